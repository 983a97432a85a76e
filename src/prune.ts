/** sparsetile/prune: weights of layers → masks in a pattern. */
export { keptElements } from './prune/kept-elements.ts'
export { type KeptMasks, keptIn, type LayerValues, layersOf } from './prune/layers.ts'
export type { Limits, PruneChoices, PruneOptions } from './prune/options.ts'
export { type BlockWiseOptions, blockWise } from './prune/patterns/block-wise.ts'
export { elementWise } from './prune/patterns/element-wise.ts'
export { type NOfMOptions, nOfM } from './prune/patterns/n-of-m.ts'
export { type TileElementWiseOptions, tileElementWise } from './prune/patterns/tile-element-wise.ts'
export { tileVectorWise } from './prune/patterns/tile-vector-wise.ts'
export { type TileWiseOptions, tileWise } from './prune/patterns/tile-wise.ts'
export { type VectorNOfMOptions, vectorNOfM } from './prune/patterns/vector-n-of-m.ts'
export { drawMasks, type MasksDrawn } from './prune/picture.ts'
export { prune } from './prune/prune-layers.ts'
export {
  type PrunedInStages,
  pruneInStages,
  type Stage,
  type StageChoice,
  type StagesOptions,
} from './prune/stages.ts'
export { isTileWise, tilesOf } from './prune/tiles.ts'
export type * from './prune/types.ts'
