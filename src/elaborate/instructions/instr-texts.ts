/** Elaboration of the texts of instructions, by purpose and target. */
import type * as Ast from '../../ast/nodes/nodes.ts'
import type { InstrText, Operand } from '../../ir/instructions/instr.ts'
import { report } from '../diagnostics.ts'
import type { Values } from './instances.ts'
import { TextOf } from './instr-pieces.ts'
import { needsOf, targetNamed } from './target-requirements.ts'
import type { Word } from './templates.ts'

export type Texts = Readonly<Record<Ast.InstrText['what'], readonly InstrText[]>>

export function textsOf(
  s: Ast.Instr,
  operands: readonly Operand[],
  threads: number,
  values: Values,
): Texts | null {
  const out: Record<Ast.InstrText['what'], InstrText[]> = {
    run: [],
    commit: [],
    prepare: [],
    publish: [],
    expect: [],
    wait: [],
    wait_read: [],
    multicast: [],
    release: [],
    filled: [],
  }
  const counted = s.words.some((w) => w.name === 'counted')
  for (const t of s.items) {
    if (t.kind !== 'text') continue
    const target = targetNamed(t.target)
    if (!target) continue
    const isOfOperands = t.what === 'run' || t.what === 'multicast' || t.what === 'filled'
    const pieces = new TextOf({
      text: t,
      target,
      operands: isOfOperands ? operands : [],
      threads,
      words: wordsOf(t.what, counted),
      values,
    }).read()
    if (pieces)
      out[t.what].push({
        target,
        from: t.from ?? 0,
        ...needsOf(t.needs, target, values),
        pieces,
      })
  }
  if (s.items.some((t) => t.kind === 'text' && t.what === 'run')) return out
  return report('check/instr-text', s.name.span, {
    message: `instruction ${s.name.name} has no text for any target`,
    expected: 'a target and a text between backticks',
  })
}

function wordsOf(what: Ast.InstrText['what'], counted: boolean): readonly Word[] {
  switch (what) {
    case 'run':
      return counted ? ['lane', 'barrier'] : ['lane']
    case 'filled':
      return ['lane', 'there']
    case 'multicast':
      return ['lane', 'barrier', 'blocks']
    case 'commit':
    case 'publish':
      return []
    case 'release':
      return ['barrier', 'block']
    case 'prepare':
      return ['barrier', 'arrivals']
    case 'expect':
      return ['barrier', 'bytes']
    case 'wait':
      return counted ? ['barrier', 'phase'] : ['pending']
    case 'wait_read':
      return ['pending']
  }
}
