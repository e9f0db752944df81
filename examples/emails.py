"""Retries, priorities and delays.

rota worker examples.emails:rota
python -m examples.emails
"""

from __future__ import annotations

import asyncio

from rota import Context, Exponential, JobFailed, PermanentError, Retry, Rota

rota = Rota()


class MailServerBusy(Exception):
    """Passes by itself: worth another attempt."""


@rota.task(queue="mail", timeout=30, retry=Retry(attempts=5, backoff=Exponential(base=0.2, max=60)))
async def send(ctx: Context, to: str, subject: str = "Hello") -> str:
    """Sends one mail. The mail server of this example is busy twice, and knows nobody called nobody."""
    if to.startswith("nobody@"):
        raise PermanentError(f"{to} does not exist")  # trying again would not help
    if to.startswith("busy@") and ctx.attempt < 3:
        raise MailServerBusy(f"attempt {ctx.attempt}: try again later")
    return f"{subject} -> {to}, attempt {ctx.attempt}"


async def main() -> None:
    """Enqueues mails of each kind, and says what became of them."""
    async with rota:
        newsletter = await send.using(priority="low").enqueue("all@example.com", subject="News")
        password = await send.using(priority="critical").enqueue("ann@example.com", subject="Your password")
        reminder = await send.using(delay=1.0).enqueue("ben@example.com", subject="One second later")
        retried = await send.enqueue("busy@example.com")
        refused = await send.enqueue("nobody@example.com")

        print("reminder:", await reminder.explain())
        for job in (password, newsletter, reminder, retried):
            print(await job.result(timeout=30))
        try:
            await refused.result(timeout=30)
        except JobFailed as failed:
            print("dead letter:", failed)


if __name__ == "__main__":
    asyncio.run(main())
