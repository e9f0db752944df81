"""Retries, priorities and delays.

rota worker examples.emails:rota
python -m examples.emails
"""

from __future__ import annotations

import asyncio

from rota import Context, Exponential, JobFailed, PermanentError, Retry, Rota

rota = Rota()


class MailServerBusy(Exception):
    """A temporary error: worth another attempt."""


@rota.task(queue="mail", timeout=30, retry=Retry(attempts=5, backoff=Exponential(base=0.2, max=60)))
async def send(ctx: Context, to: str, subject: str = "Hello") -> str:
    """Sends one mail. The mail server of this example is busy twice, and rejects the address unknown@."""
    if to.startswith("unknown@"):
        raise PermanentError(f"{to} does not exist")  # trying again would not help
    if to.startswith("busy@") and ctx.attempt < 3:
        raise MailServerBusy(f"attempt {ctx.attempt}: try again later")
    return f"{subject} -> {to}, attempt {ctx.attempt}"


async def main() -> None:
    """Enqueues mails with different options, and prints how each job ended."""
    async with rota:
        newsletter = await send.using(priority="low").enqueue("all@example.com", subject="News")
        password = await send.using(priority="critical").enqueue("ann@example.com", subject="Your password")
        reminder = await send.using(delay=1.0).enqueue("ben@example.com", subject="One second later")
        retried = await send.enqueue("busy@example.com")
        refused = await send.enqueue("unknown@example.com")

        print("reminder:", await reminder.explain())
        for job in (password, newsletter, reminder, retried):
            print(await job.result(timeout=30))
        try:
            await refused.result(timeout=30)
        except JobFailed as failed:
            print("dead letter:", failed)


if __name__ == "__main__":
    asyncio.run(main())
