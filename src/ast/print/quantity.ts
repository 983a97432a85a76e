/** Numbers with their nouns in messages. */

/** `1 loop`, `2 loops`. */
export const quantity = (n: number, what: string): string => `${n} ${what}${n !== 1 ? 's' : ''}`
