/** All queues to choose from; also one that is gone, if it is chosen. */
export function queueOptions(
  queues: readonly { name: string }[] | undefined,
  chosen: string | undefined,
  mayBeAll = true,
) {
  const names = (queues ?? []).map(({ name }) => name);
  if (chosen !== undefined && !names.includes(chosen)) names.push(chosen);
  return [
    ...(mayBeAll ? [{ value: "", label: "All queues" }] : []),
    ...names.map((name) => ({ value: name, label: name })),
  ];
}

/** From this share of its attempts on, failing is no accident any more. */
const MANY_FAIL = 0.1;

export function failsOften(rate: number | null): boolean {
  return rate !== null && rate >= MANY_FAIL;
}
