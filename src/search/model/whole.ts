import type { For } from '../../ir/loops.ts'

/** More iterations are a loop in the text. */
const WHOLE = 16

/** True if all iterations of a loop are expanded in the generated code, as register loops are in the end. */
export const isWhole = ({ mode, extent }: For): boolean =>
  mode.kind === 'vectorize' ||
  (mode.kind === 'unroll' && mode.factor === null) ||
  (mode.kind === 'serial' && extent.kind === 'const' && extent.value <= WHOLE)
