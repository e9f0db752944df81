"""What must hold in every state of `claim_model`: nothing is lost, ended twice, held by two or stuck."""

from __future__ import annotations

from tests.properties.claim_model import Model, State, Step


def violation(before: State, step: Step) -> str:
    """What a step violates; "" if nothing."""
    after, action = step.state, step.action
    for number, (was, job) in enumerate(zip(before.jobs, after.jobs, strict=True)):
        if was.state != "absent" and job.state == "absent":
            return f"job {number} is lost"
        if was.state == "completed" and job.state != "completed":
            return f"job {number} was completed, and is {job.state}"
        if job.state == "processing" and was.fence > job.fence:
            return f"the fence of job {number} went back"
        owners = {w for w, own in enumerate(after.workers) for held in own.held if held[:2] == (number, job.fence)}
        if job.state == "processing" and owners - {job.owner}:
            return f"the claim of job {number} belongs to {sorted(owners)}"
    if action.name == "report" and action.verb == "complete" and step.reply == "ok":
        was = before.jobs[action.job]
        fence = before.workers[action.worker].held[action.place].fence
        if was.state == "completed":
            return f"job {action.job} was completed twice"
        if was.started > fence:
            return f"job {action.job} was completed by fence {fence}, after {was.started} had been started"
    if action.name.startswith("claim") and not action.is_lost and isinstance(step.reply, tuple):
        old = {held[:2] for held in before.workers[action.worker].held}
        new = [held for held in after.workers[action.worker].held if held[:2] not in old and not held.sent]
        for held in new:
            if before.jobs[held.job].started >= held.fence:
                return f"job {held.job} was started twice, or under an older fence"
            if after.jobs[held.job][1:3] != (action.worker, held.fence):
                return f"worker {action.worker} starts job {held.job} without owning it"
    return ""


def is_stuck(model: Model, state: State) -> str:
    """Which job does not end although every lease runs out and a new worker claims what there is; "" if none."""
    jobs = tuple(job._replace(is_expired=job.state == "processing") for job in state.jobs)
    swept, *_ = model.reap(state._replace(jobs=jobs))
    left = [number for number, job in enumerate(swept.jobs) if job.state == "processing"]
    return f"jobs {left} are stuck" if left else ""
