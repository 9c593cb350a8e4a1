// The published claims and their verdicts, in groups that open and close.
"use strict";

const GROUPS = {
  reproduced: "Reproduced claims",
  "not reproduced": "Claims that are not reproduced, and why",
  inconclusive: "Inconclusive claims: our intervals are too wide",
  "not tested yet": "Claims that need other runs: each prints its command",
  "not testable here": "Claims that cannot be tested here",
};

const labelOf = (each, words) => REPORT.claims.labelled ? `${words}, stack ${each.stack}` : words;

function more(claim, judged) {
  const links = claim.shown.flatMap((name, place) => {
    const href = name.startsWith("figure-") ? `figures/${claim.study}/${name}.svg` : `tables/${claim.study}/${name}.md`;
    return [place ? ", " : "", make("a", name, { href })];
  });
  const why = judged.map(each => `${REPORT.claims.labelled ? `With ${each.stack}: ` : ""}${each.why}.`).join(" ");
  return make("details", [
    make("summary", make("code", claim.id, { class: "id" })),
    make("p", `Criterion: ${claim.criterion}. ${why}`),
    ...(claim.differs ? [make("p", `Here: ${claim.differs}`)] : []),
    make("p", ["Measure: ", make("code", claim.measure)]),
    make("p", ["Shown in (files next to this one): ", ...links]),
    make("p", [claim.verdict === "not testable here" ? "No run can judge this claim; numbers for comparison: " : "Test this claim alone: ", make("code", claim.retest.command),
      ` (${(claim.retest.disk_bytes / 1e9).toFixed(1)} GB of disk)`]),
  ], { id: `claim-${claim.id}` });
}

// The reason of a claim that is not reproduced is shown in its row, without the value beside it; that of a reproduced
// claim is in its details.
function judgementCells(each, several) {
  const why = each.verdict === "reproduced" || !each.ours_text ? null : make("p", upperFirst(`${each.why.replace(`ours ${each.ours_text}; `, "")}.`), { class: "because" });
  const ours = make("td", [each.ours_text || upperFirst(`${each.why}.`), why], { "data-label": labelOf(each, "Ours [95 %]") });
  const verdict = make("td", make("span", each.verdict, { class: `verdict ${slug(each.verdict)}` }), { "data-label": labelOf(each, "Verdict") });
  return several ? [ours, verdict] : [ours];
}

function claimTable(claims, title) {
  const several = claims[0].others.length > 0;
  const heads = ["Claim", "Section", "Published, another machine", ...[claims[0], ...claims[0].others]
    .flatMap(each => [labelOf(each, "Ours [95 %]"), ...(several ? [labelOf(each, "Verdict")] : [])])];
  const rows = claims.map(claim => {
    const judged = [claim, ...claim.others];
    const published = claim.published.text !== claim.published_text ? `${claim.published_text} (${claim.published.text})` : claim.published_text;
    return make("tr", [
      make("td", [claim.statement, more(claim, judged)]),
      make("td", claim.section, { "data-label": "Section" }),
      make("td", published, { "data-label": "Published, another machine" }),
      ...judged.flatMap(each => judgementCells(each, several)),
    ]);
  });
  return make("table", [make("caption", title, { class: "unseen" }), make("thead", make("tr", heads.map(head => make("th", head, { scope: "col" })))),
    make("tbody", rows)], { class: "cards claims" });
}

function totals() {
  const { stacks, labelled, claims } = REPORT.claims;
  const of = counts => VERDICTS.filter(verdict => counts[verdict]).map(verdict => `${counts[verdict]} ${verdict}`).join(", ") || "none was judged";
  const parts = stacks.map(({ stack, counts }) => (labelled ? `with the software stack ${stack} ` : "") + of(counts));
  const grouped = stacks.length > 1 ? ` The groups follow the verdict with ${stacks[0].stack}.` : "";
  return `Of ${counted(claims.length, "published claim")}, ${parts.join("; ")}.${grouped}`;
}

function claims() {
  byId("claims").hidden = !REPORT.claims?.claims?.length;
  if (byId("claims").hidden) return;
  byId("totals").textContent = totals();
  for (const verdict of VERDICTS) {
    const found = REPORT.claims.claims.filter(claim => claim.verdict === verdict);
    if (!found.length) continue;
    const title = GROUPS[verdict];
    const fold = make("details", [
      make("summary", make("h3", [title, make("span", ` (${found.length})`, { class: "count" })], { class: slug(verdict) })),
      make("div", claimTable(found, title), { class: "scroll" }),
    ], { class: "fold", "data-verdict": slug(verdict) });
    // `toggle` fires late, and also after a link opened the fold: ignore it if the view has this state already.
    fold.addEventListener("toggle", () => {
      if (fold.open !== view.verdicts.has(slug(verdict))) choose("verdicts", slug(verdict), fold.open);
    });
    byId("ledger").append(fold);
  }
  changed.push(() => {
    for (const fold of document.querySelectorAll("#ledger [data-verdict]")) fold.open = view.verdicts.has(fold.dataset.verdict);
  });
}
