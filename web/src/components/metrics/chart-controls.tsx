/** The controls of the charts of a page: range, comparison, and the chosen moment. */

import { X, ZoomIn } from "lucide-react";

import type { TimeSpan } from "@/components/charts/chart-types";
import { Button, IconButton } from "@/components/buttons";
import { SelectField } from "@/components/form-fields";
import { JobsLink } from "@/components/job-links";
import { SegmentedControl } from "@/components/segmented-control";
import { COMPARISONS, formatSpan, RANGES, type ChartSearch, type Range } from "@/lib/chart-period";
import { useTimeZone } from "@/lib/time-zone-setting";
import type { MetricsScope } from "@/api/metrics-history";

interface ChartControlsProps {
  search: ChartSearch;
  onChange: (change: ChartSearch) => void;
}

const NOT_CHOSEN = { from: undefined, until: undefined };

export function ChartControls({ search, onChange }: ChartControlsProps) {
  const zone = useTimeZone();
  const { from, until, compare } = search;
  const isChosen = from !== undefined && until !== undefined;
  return (
    <div className="flex flex-wrap items-center gap-2">
      {isChosen && (
        <span className="flex items-center gap-1 rounded-md border border-accent bg-accent-soft pl-2.5 text-[13px]">
          {formatSpan({ from: Date.parse(from), until: Date.parse(until) }, zone)}
          <IconButton label="Clear the chosen time range" className="size-7" onClick={() => onChange(NOT_CHOSEN)}>
            <X className="size-3.5" />
          </IconButton>
        </span>
      )}
      <SelectField
        label="Compare with"
        isLabelHidden
        className="w-56"
        value={compare ?? ""}
        onChange={(chosen) => onChange({ compare: chosen === "" ? undefined : chosen })}
        options={[
          { value: "", label: "No comparison" },
          { value: "day", label: `Compare: ${COMPARISONS.day.label}` },
          { value: "week", label: `Compare: ${COMPARISONS.week.label}` },
        ]}
      />
      <SegmentedControl<Range | "chosen">
        label="Range"
        value={isChosen ? "chosen" : (search.range ?? "hour")}
        onChange={(selected) =>
          onChange({ ...NOT_CHOSEN, range: selected === "day" || selected === "month" ? selected : undefined })
        }
        options={(Object.keys(RANGES) as Range[]).map((value) => ({ value, label: RANGES[value].label }))}
      />
    </div>
  );
}

interface PickedMomentProps {
  picked: TimeSpan | null;
  scope: MetricsScope;
  onZoom: (span: TimeSpan) => void;
  onClear: () => void;
}

/** The jobs of the moment that was picked in a chart. Its height is reserved, so that nothing moves. */
export function PickedMoment({ picked, scope, onZoom, onClear }: PickedMomentProps) {
  const zone = useTimeZone();
  if (picked === null) {
    return (
      <p className="min-h-8 text-xs leading-8 text-muted">
        Click a chart to see the jobs of that moment; drag over it to zoom in.
      </p>
    );
  }
  const span = { since: new Date(picked.from).toISOString(), until: new Date(picked.until).toISOString() };
  return (
    <div role="group" aria-label="Jobs of this moment" className="flex min-h-8 flex-wrap items-center gap-x-4 gap-y-1">
      <span className="tabular-nums text-[13px] font-medium">{formatSpan(picked, zone)}</span>
      <JobsLink filter={{ ...scope, ...span, state: "COMPLETED" }} className="link text-[13px]">
        Completed
      </JobsLink>
      <JobsLink filter={{ ...scope, ...span, state: "FAILED" }} className="link text-[13px]">
        Failed
      </JobsLink>
      <JobsLink filter={{ ...scope, ...span }} className="link text-[13px]">
        Enqueued
      </JobsLink>
      <Button variant="quiet" onClick={() => onZoom(picked)}>
        <ZoomIn aria-hidden className="size-3.5" /> Zoom in
      </Button>
      <IconButton label="Clear the picked moment" onClick={onClear}>
        <X className="size-3.5" />
      </IconButton>
    </div>
  );
}
