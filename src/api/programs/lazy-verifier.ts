/** Lazy import of the verifiers, so that programs that do not use them do not load them. A file of its own, for bundles of browsers. */
import type { StageObserver } from '../../run/compile/compile.ts'

/** Returns an observer that verifies each stage; null unless `wanted`. */
export const verifierFor = async (wanted: boolean): Promise<StageObserver | null> =>
  wanted ? (await import('../stages/stage-verifier.ts')).verifyStages : null
