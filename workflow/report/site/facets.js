// Filters of the table before this script: a list for each facet of its rows. The address's fragment holds the choice.
"use strict";

{
  const table = document.currentScript.previousElementSibling.querySelector("table");
  const rows = [...table.tBodies[0].rows].filter(row => Object.keys(row.dataset).length);
  const form = document.createElement("form"), count = document.createElement("output"), lists = [];
  form.className = "facets";
  form.setAttribute("aria-label", "Rows that are shown");
  for (const name of new Set(rows.flatMap(row => Object.keys(row.dataset)))) {
    const values = [...new Set(rows.map(row => row.dataset[name] ?? ""))].filter(value => value).sort();
    const list = document.createElement("select"), label = document.createElement("label");
    list.name = name;
    list.append(new Option("all", ""), ...values.map(value => new Option(value)));
    label.append(`${name[0].toUpperCase()}${name.slice(1)} `, list);
    form.append(label, " ");
    lists.push(list);
  }
  form.append(count);
  table.closest(".scroll").before(form);

  const show = () => {
    for (const row of rows) row.hidden = lists.some(list => list.value && row.dataset[list.name] !== list.value);
    count.value = `${rows.filter(row => !row.hidden).length} of ${rows.length} rows`;
  };
  const read = () => {
    const asked = new URLSearchParams(location.hash.slice(1));
    for (const list of lists) {
      list.value = asked.get(list.name) ?? "";
      if (list.selectedIndex < 0) list.value = ""; // the table has no such row
    }
    show();
  };
  form.addEventListener("submit", event => event.preventDefault());
  form.addEventListener("change", () => {
    const chosen = new URLSearchParams(lists.filter(list => list.value).map(list => [list.name, list.value]));
    // Fails in a frame without an address of its own, where the filters work all the same.
    try { history.replaceState(null, "", `${location.href.split("#")[0]}#${chosen}`); } catch { /* see above */ }
    show();
  });
  window.addEventListener("hashchange", read);
  read();
  document.body.dataset.ready = "yes"; // the table can be read
}
