/** Options of a queue selector; includes the selected queue even if it no longer exists. */
export function queueSelectOptions(
  queues: readonly { name: string }[] | undefined,
  selected: string | undefined,
  mayBeAll = true,
) {
  const names = (queues ?? []).map(({ name }) => name);
  if (selected !== undefined && !names.includes(selected)) names.push(selected);
  return [
    ...(mayBeAll ? [{ value: "", label: "All queues" }] : []),
    ...names.map((name) => ({ value: name, label: name })),
  ];
}
