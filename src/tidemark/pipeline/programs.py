"""Which servers' programs the series of a plan run from: what the rule `provision` fetches, and nothing else."""

from __future__ import annotations

from tidemark.pipeline.plan import Plan
from tidemark.runs.spec import SeriesSpec
from tidemark.services.base import Service
from tidemark.services.servers import locks_of, started_here, tools_of
from tidemark.studies.registry import registry
from tidemark.systems.variants import variant_of


def servers(spec: SeriesSpec) -> list[type[Service]]:
    """The kinds of server that are started here for the series."""
    workload = registry()[spec.study].workload
    return started_here((*workload.services, *variant_of(spec).needs), spec.services)


def tools(spec: SeriesSpec) -> tuple[str, ...]:
    """The locks in envs/tools that its workload, its system and its servers need."""
    asked = registry()[spec.study].workload.tools_for(variant_of(spec).system)
    return tuple(dict.fromkeys((*asked, *tools_of(servers(spec)))))


def programs(plan: Plan) -> tuple[str, ...]:
    """The folders of envs/jars that any series of the plan runs from, in the order of their names."""
    return locks_of(kind for spec in plan.series for kind in servers(spec))


def provided(plan: Plan) -> list[str]:
    """What says that all of them are there, from the workspace's root: a file that is named after them.

    A plan with other programs has another file, which is not there yet. None where all servers are somebody else's.
    """
    names = programs(plan)
    return [f".tidemark/programs/{'+'.join(names)}.json"] if names else []
