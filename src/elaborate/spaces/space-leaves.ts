/** Steps with open arguments in a space, and errors for values that a decision does not have. */
import { fail } from '../../ast/diagnostics/diagnostic.ts'
import type { SpaceStep } from './space-types.ts'

export type Use = Extract<SpaceStep, { kind: 'use' }>

/** Returns true for a step with open arguments. A `use` step of a schedule text has no `step` field. */
export const isUse = (leaf: { readonly kind: string }): leaf is Use => leaf.kind === 'use' && 'step' in leaf

export function notAmong(name: string, value: unknown, options: readonly string[]): never {
  return fail({
    code: 'space/point',
    message: `${name} cannot be ${String(value)}`,
    expected: options.join(', '),
  })
}
