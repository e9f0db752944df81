import { lazy, Suspense } from "react";

import type { ChartProps } from "@/components/charts/chart";

const Chart = lazy(() => import("@/components/charts/chart"));

/** The chart, loaded when one is first shown. Its place is kept until then. */
export function LazyChart(props: ChartProps) {
  const height = (props.height ?? 160) + 28;
  return (
    <div style={{ minHeight: height }}>
      <Suspense fallback={null}>
        <Chart {...props} />
      </Suspense>
    </div>
  );
}
