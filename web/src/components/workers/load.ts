/** How much of a core a worker uses: from two of its reports, or since it started. */

export interface Report {
  readonly last_seen: string;
  readonly started_at: string | null;
  readonly cpu_seconds: number;
}

/** A share: 1 is one core. Null where nothing can be said yet. */
export function cpuShare(now: Report, before: Report | undefined): number | null {
  const isLater = before !== undefined && before.last_seen !== now.last_seen && before.cpu_seconds <= now.cpu_seconds;
  const since = isLater ? before.last_seen : now.started_at;
  if (since === null) return null;
  const seconds = (Date.parse(now.last_seen) - Date.parse(since)) / 1000;
  if (seconds <= 0) return null;
  return (now.cpu_seconds - (isLater ? before.cpu_seconds : 0)) / seconds;
}

/** What each worker reported last, and before that: so that its load can be told when nothing new has come. */
export class Reports {
  private readonly known = new Map<string, { now: Report; before: Report | undefined }>();

  share(id: string, report: Report): number | null {
    const known = this.known.get(id);
    if (known?.now.last_seen === report.last_seen) return cpuShare(report, known.before);
    this.known.set(id, { now: report, before: known?.now });
    return cpuShare(report, known?.now);
  }
}
