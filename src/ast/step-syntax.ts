/**
 * How the steps of schedules are written: data, from which texts are read and printed, steps checked and generated. The
 * steps themselves are declared where they are made (`schedule/primitives.ts`); here none is known by name.
 */
import type { StepName } from './nodes.ts'

/** A step that begins with a word of its own; most words have one form. */
export interface StepSyntax {
  readonly word: string
  readonly forms: readonly (readonly Syntax[])[]
}

/** What stands in the text of a step: keywords and signs as they are, fields of the step, and what may be left out. */
export type Syntax =
  | string
  | { readonly field: string; readonly value: ValueSyntax }
  | { readonly optional: readonly Syntax[] }

/** How a form of a step is written: `split LOOP by N -> (NAME, …)`. */
export const formText = (word: string, form: readonly Syntax[]): string =>
  [word, ...form.map(syntaxText)].join(' ')

const syntaxText = (s: Syntax): string =>
  typeof s === 'string'
    ? s
    : 'optional' in s
      ? `[${s.optional.map(syntaxText).join(' ')}]`
      : valueText(s.value)

function valueText(v: ValueSyntax): string {
  if (v.kind === 'list') return v.parentheses ? `(${valueText(v.of)}, …)` : `${valueText(v.of)}, …`
  if (v.kind === 'word') return v.text
  if (v.kind === 'binding') return 'LOOP to AXIS'
  return v.kind === 'integer' ? 'N' : ('of' in v ? v.of : v.kind).toUpperCase()
}

export type ValueSyntax =
  /** `i`, `nest.i`; handles of loops, where steps are data, are for loops and not for iterators. */
  | { readonly kind: 'loop'; readonly handles: boolean }
  | { readonly kind: 'name'; readonly of: StepName }
  /** An integer expression; `operand`: one that stands beside an operator. */
  | { readonly kind: 'integer'; readonly operand: boolean }
  /** Where a loop is divided: after a nest inside of it, or after so many statements. */
  | { readonly kind: 'place' }
  /** `i to block.x` */
  | { readonly kind: 'binding' }
  /** A keyword or sign that means something. */
  | { readonly kind: 'word'; readonly text: string; readonly means: string | boolean }
  /** A memory or an instruction, with the arguments of a family. */
  | { readonly kind: 'instance'; readonly of: 'memory' | 'instr' }
  | ListSyntax
  /** What steps have as data only. */
  | { readonly kind: 'data'; readonly is: (x: unknown) => boolean; readonly expected: string }

export interface ListSyntax {
  readonly kind: 'list'
  readonly of: ValueSyntax
  readonly parentheses: boolean
  /** What one of them is called. */
  readonly what: string
  /** How many there are: a number, or so many for each in the list of another field; and of steps as data, at least. */
  readonly count?: number | { readonly times: number; readonly field: string } | undefined
  readonly least?: number | undefined
}
