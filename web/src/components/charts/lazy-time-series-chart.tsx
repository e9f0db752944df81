import { lazy, Suspense } from "react";

import type { ChartProps } from "@/components/charts/chart-types";

const Chart = lazy(() => import("@/components/charts/time-series-chart"));

/** The chart, loaded when one is first shown. Its space is reserved until then. */
export function LazyTimeSeriesChart(props: ChartProps) {
  const height = (props.height ?? 160) + 28;
  return (
    <div style={{ minHeight: height }}>
      <Suspense fallback={null}>
        <Chart {...props} />
      </Suspense>
    </div>
  );
}
