"""Server programs that the series of a plan use: exactly those that the rule `provision` fetches."""

from __future__ import annotations

from tidemark.pipeline.plan import Plan
from tidemark.runs.spec import SeriesSpec
from tidemark.services.base import Service
from tidemark.services.servers import locks_of, started_here, tools_of
from tidemark.studies.registry import registry
from tidemark.systems.registry import variant_of


def servers(spec: SeriesSpec) -> list[type[Service]]:
    """Return the kinds of server that are started here for the series."""
    workload = registry()[spec.study].workload
    return started_here((*workload.services, *variant_of(spec).needs), spec.services)


def tools(spec: SeriesSpec) -> tuple[str, ...]:
    """Return the locks in envs/tools that the series' workload, system and servers need."""
    asked = registry()[spec.study].workload.tools_for(variant_of(spec).system)
    return tuple(dict.fromkeys((*asked, *tools_of(servers(spec)))))


def programs(plan: Plan) -> tuple[str, ...]:
    """Return the folders of envs/jars that any series of the plan uses, sorted by name."""
    return locks_of(kind for spec in plan.series for kind in servers(spec))


def provided(plan: Plan) -> list[str]:
    """Return the file that marks the plan's programs as provisioned, named after them, from the workspace's root.

    A plan with other programs has another file, which does not exist yet. Empty if all servers are external.
    """
    names = programs(plan)
    return [f".tidemark/programs/{'+'.join(names)}.json"] if names else []
