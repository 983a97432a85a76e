/** Styles of diagnostics and their ANSI colours. */
const COLORS = { error: '31', warning: '33', note: '36', strong: '1', frame: '34', help: '32' } as const
export type Paint = (style: keyof typeof COLORS, text: string) => string

export const plain: Paint = (_, text) => text
export const ansi: Paint = (style, text) => (text === '' ? '' : `\u001b[${COLORS[style]}m${text}\u001b[0m`)
