/**
 * Generated cases are the same in every run, so that a failure says something about the change at hand.
 * `SPT_SEED=random` (or a number) looks elsewhere; the long searches take `RUNS` and `SPT_LAW_RUNS` as well.
 */
import fc from 'fast-check'

const seed = process.env.SPT_SEED ?? '2026'
if (seed !== 'random') fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: Number(seed) })
