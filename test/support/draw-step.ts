/** A step of any word, drawn from what its primitive says that it takes; most are refused. */
import type { StepSyntax, Syntax, ValueSyntax } from '../../src/ast/nodes/step-syntax.ts'
import { THREAD_AXES } from '../../src/ir/expressions/expr.ts'
import type { LoopRef } from '../../src/schedule/names/kernel-names.ts'
import type { LoopStep } from '../../src/schedule/steps/step-data.ts'

/** Where draws come from, and what there is to draw. */
export interface Draws {
  /** From 0 to n - 1. */
  below(n: number): number
  loop(): LoopRef
  buffer(): string
  nest(): string
}

export function drawnStep({ word, forms }: StepSyntax, d: Draws): LoopStep {
  const fields: Record<string, unknown> = {}
  const pick = <T>(xs: readonly T[]): T => xs[d.below(xs.length)]!
  const one = (v: ValueSyntax): unknown => {
    switch (v.kind) {
      case 'loop':
        return d.loop()
      case 'name':
        if (v.of === 'buffer') return d.buffer()
        if (v.of === 'nest') return d.nest()
        if (v.of === 'size') throw new Error('the data are for any size')
        return `new_${d.below(1000)}`
      case 'integer':
        return 1 + d.below(4)
      case 'place':
        return d.below(2) === 0 ? 1 + d.below(2) : d.nest()
      case 'binding':
        return { loop: d.loop(), to: pick(THREAD_AXES) }
      case 'word':
        return v.means
      case 'instance':
        if (v.of === 'instr') throw new Error('nothing is declared')
        return pick(['register', 'shared'])
      case 'list': {
        const { count = 1 + d.below(2) } = v
        const length = typeof count === 'number' ? count : count.times * (fields[count.field] as []).length
        return Array.from({ length }, () => one(v.of))
      }
      case 'data':
        return undefined
    }
  }
  const draw = (syntax: readonly Syntax[]): void => {
    for (const s of syntax) {
      if (typeof s === 'string') continue
      if ('field' in s) fields[s.field] = one(s.value)
      // What may be left out mostly is.
      else if (d.below(8) === 7) draw(s.optional)
    }
  }
  draw(pick(forms))
  return { kind: word, ...fields } as LoopStep
}
