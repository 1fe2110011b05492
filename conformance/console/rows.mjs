// Rows of the report: one line of JSON each.

/** Prints a row. */
export function row(what, figure, bar, met) {
  console.log(JSON.stringify({ case: what, figure: String(figure), bar: String(bar), met }));
}

/** Runs a leg. An error is a row that misses its bar. */
export async function leg(what, bar, run) {
  try {
    const { figure, met } = await run();
    row(what, figure, bar, met);
  } catch (error) {
    row(what, `${error.message}`, bar, false);
  }
}

export function expect(holds, what) {
  if (!holds) throw new Error(what);
}

/** The first entries of a list as text. */
export function some(list) {
  return list.length === 0 ? "" : `; first: ${list.slice(0, 3).join(" | ").slice(0, 900)}`;
}

/** A percentile of numbers. */
export function percentile(numbers, percent) {
  const sorted = [...numbers].sort((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * percent) / 100))];
}
