import { useMemo } from "react";

import type { History } from "@/api/overview";
import { LazyChart } from "@/components/charts/lazy-chart";
import type { Series } from "@/components/charts/chart";
import { short } from "@/lib/numbers";
import { duration } from "@/lib/time";

type Times = History["total"]["wait"];

function perMinute(value: number): string {
  return `${value < 10 ? Math.round(value * 10) / 10 : short(Math.round(value))}/min`;
}

function useTimes(history: History): number[] {
  return useMemo(() => history.points.map((point) => Date.parse(point.at)), [history]);
}

/** What was completed and what failed, per minute. */
export function Throughput({ history, label }: { history: History; label: string }) {
  const times = useTimes(history);
  const series = useMemo<Series[]>(() => {
    const minutes = history.step_ms / 60_000;
    return [
      {
        label: "completed",
        color: "--completed",
        isFilled: true,
        values: history.points.map((point) => point.completed / minutes),
      },
      {
        label: "failed attempts",
        color: "--failed",
        dash: [4, 3],
        values: history.points.map((point) => point.failed / minutes),
      },
    ];
  }, [history]);
  return <LazyChart label={label} times={times} series={series} format={perMinute} />;
}

/** How long jobs waited, or ran: the usual, the slow, the slowest. */
export function Spans({ history, of, label }: { history: History; of: "wait" | "run"; label: string }) {
  const times = useTimes(history);
  const series = useMemo<Series[]>(() => {
    const line = (name: keyof Times) => history.points.map((point) => point[of][name]);
    return [
      { label: "p50", color: "--completed", values: line("p50_ms") },
      { label: "p95", color: "--pending", dash: [6, 3], values: line("p95_ms") },
      { label: "p99", color: "--scheduled", dash: [2, 3], values: line("p99_ms") },
    ];
  }, [history, of]);
  return <LazyChart label={label} times={times} series={series} format={duration} />;
}
