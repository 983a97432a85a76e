import type { For } from '../../ir/statements/loops.ts'

/** Maximum number of iterations that compilers expand; more remain a loop in the generated code. */
const MAX_EXPANDED = 16

/** True if all iterations of a loop are expanded in the generated code. */
export const isExpanded = ({ mode, extent }: For): boolean =>
  mode.kind === 'vectorize' ||
  (mode.kind === 'unroll' && mode.factor === null) ||
  (mode.kind === 'serial' && extent.kind === 'const' && extent.value <= MAX_EXPANDED)
