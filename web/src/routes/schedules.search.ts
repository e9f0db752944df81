/** What the URL of this page can say. */
export interface SchedulesSearch {
  readonly [name: string]: never;
}

export function readSchedulesSearch(_search: Record<string, unknown>): SchedulesSearch {
  return {};
}
