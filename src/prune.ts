/** sparsetile/prune: weights of layers → masks in a pattern. */
export {
  keptElements,
  type LayerValues,
  layersFromValues,
  unionMasks,
} from './prune/layers.ts'
export type { PruneOptions, PruneSettings, SparsityLimits } from './prune/options.ts'
export { type BlockWiseOptions, blockWise } from './prune/patterns/block-wise.ts'
export { elementWise, type TileElementWiseOptions, tileElementWise } from './prune/patterns/element-wise.ts'
export { type NOfMOptions, nOfM, type VectorNOfMOptions, vectorNOfM } from './prune/patterns/n-of-m.ts'
export { tileVectorWise } from './prune/patterns/tile-vector-wise.ts'
export { type TileWiseOptions, tileWise } from './prune/patterns/tile-wise.ts'
export { type MaskPicture, renderMasks } from './prune/picture.ts'
export { prune } from './prune/prune-layers.ts'
export {
  pruneInStages,
  type Stage,
  type StagedPruneOptions,
  type StagedPruneResult,
  type StageOptions,
} from './prune/stages.ts'
export { extractTiles, isTileWise } from './prune/tiles.ts'
export type * from './prune/types.ts'
