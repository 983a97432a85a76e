/** A count as text: beyond the integers that a number holds, its digits would be made up. */
export const countText = (count: number): string =>
  count <= Number.MAX_SAFE_INTEGER ? String(count) : 'more than 9007199254740991'
