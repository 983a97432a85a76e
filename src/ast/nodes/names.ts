/** Reserved words, which cannot be names: `reserved` in the grammar. */
export const RESERVED = /^(let|if|else|iterate|as|and|or|not|true|false|inf|nan)$/

/** True if a text is a valid name: an identifier that is not reserved. Steps test every loop name that they create. */
export const isName = (text: string): boolean => /^[A-Za-z_]\w*$/.test(text) && !RESERVED.test(text)
