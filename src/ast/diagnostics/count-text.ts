/** A count as text; beyond the exact integers of a number, its digits would be wrong. */
export const countText = (count: number): string =>
  count <= Number.MAX_SAFE_INTEGER ? String(count) : 'more than 9007199254740991'
