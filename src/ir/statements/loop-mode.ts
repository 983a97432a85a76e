/** Expressions in the modes of loops: searches of work partitions, and barriers that instructions signal. */
import { invariant } from '../../ast/diagnostics/diagnostic.ts'
import type { Expr } from '../expressions/expr.ts'
import type { Signals } from '../instructions/instr.ts'
import { mapSame } from '../lists.ts'
import type { LoopMode } from './loops.ts'

/** The mode with `f` applied to its expressions. */
export function mapMode(mode: LoopMode, f: (e: Expr) => Expr): LoopMode {
  if (mode.kind === 'accumulate' && mode.partition) {
    const search = f(mode.partition.search)
    invariant(search.kind === 'search', 'segments are searched for')
    return search === mode.partition.search ? mode : { ...mode, partition: { ...mode.partition, search } }
  }
  if (mode.kind !== 'instr' || !mode.signals) return mode
  const signals = mapSignals(mode.signals, f)
  return signals === mode.signals ? mode : Object.freeze({ ...mode, signals })
}

function mapSignals(signals: Signals, f: (e: Expr) => Expr): Signals {
  const { multicast } = signals
  const index = mapSame(signals.index, f)
  const turn = multicast && f(multicast.turn)
  if (index === signals.index && turn === multicast?.turn) return signals
  return { ...signals, index, ...(multicast ? { multicast: { ...multicast, turn: turn! } } : {}) }
}
