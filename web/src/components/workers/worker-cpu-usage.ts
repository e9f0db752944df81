/** The CPU usage of a worker, from two of its heartbeats, or since it started. */

export interface WorkerReport {
  readonly last_seen: string;
  readonly started_at: string | null;
  readonly cpu_seconds: number;
}

/** CPU usage in cores: 1 is one core. Null if unknown. */
export function cpuShare(now: WorkerReport, before: WorkerReport | undefined): number | null {
  const isLater = before !== undefined && before.last_seen !== now.last_seen && before.cpu_seconds <= now.cpu_seconds;
  const since = isLater ? before.last_seen : now.started_at;
  if (since === null) return null;
  const seconds = (Date.parse(now.last_seen) - Date.parse(since)) / 1000;
  if (seconds <= 0) return null;
  return (now.cpu_seconds - (isLater ? before.cpu_seconds : 0)) / seconds;
}

/** The last two reports of each worker: usage stays known while no new report arrives. */
export class WorkerCpuUsage {
  private readonly known = new Map<string, { now: WorkerReport; before: WorkerReport | undefined }>();

  share(id: string, report: WorkerReport): number | null {
    const known = this.known.get(id);
    if (known?.now.last_seen === report.last_seen) return cpuShare(report, known.before);
    this.known.set(id, { now: report, before: known?.now });
    return cpuShare(report, known?.now);
  }
}
