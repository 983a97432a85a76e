/** Sums and the blocks of elements that loops reach, for the checks of this room. */
export { blockOf, type Space, segmentOf } from '../ir/blocks.ts'
export { type Loops, linear, loopMap } from '../ir/linear.ts'
