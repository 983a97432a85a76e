/** Sums and the blocks of elements that loops reach, for the checks of this room. */

export { type Loops, linear, loopMap } from '../analysis/integers/linear.ts'
export { blockOf, type Space, segmentOf } from '../analysis/subscript-injectivity.ts'
