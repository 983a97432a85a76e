/** The one door to the verifiers: whoever does not ask for them does not load them. */
import type { StageObserver } from '../run/compile.ts'

/** An observer that checks what holds of each stage, where that is wanted. */
export const verifierFor = async (wanted: boolean): Promise<StageObserver | null> =>
  wanted ? (await import('./stage-verifier.ts')).verifyStages : null
