import type { For } from '../../ir/loops.ts'

/** More iterations are a loop in the text. */
const WHOLE = 16

/** Loops of which all iterations stand side by side in the text, as those over registers do in the end. */
export const isWhole = ({ mode, extent }: For): boolean =>
  mode.kind === 'vectorize' ||
  (mode.kind === 'unroll' && mode.factor === null) ||
  (mode.kind === 'serial' && extent.kind === 'const' && extent.value <= WHOLE)
