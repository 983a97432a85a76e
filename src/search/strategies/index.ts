/** Strategies by name. */
import { fail } from '../../ast/diagnostics/diagnostic.ts'
import { nameText } from '../../ast/diagnostics/expect-argument.ts'
import type { StrategyFactory } from '../types.ts'
import { evolutionary } from './evolutionary.ts'
import { exhaustive, random } from './exhaustive.ts'
import { surrogate } from './forest-search.ts'
import { halving } from './halving.ts'
import { model } from './model.ts'

export const STRATEGIES: Readonly<Record<string, StrategyFactory>> = {
  exhaustive,
  random,
  evolutionary,
  surrogate,
  halving,
  model,
}

/** @throws SptError `search/strategy` */
export function strategyNamed(name: string): StrategyFactory {
  const found = Object.hasOwn(STRATEGIES, name) ? STRATEGIES[name] : undefined
  if (found) return found
  const candidates = Object.keys(STRATEGIES)
  return fail({
    code: 'search/strategy',
    message: `there is no strategy ${nameText(name)}`,
    lookup: { name: nameText(name), candidates },
    expected: `one of ${candidates.join(', ')}`,
  })
}
