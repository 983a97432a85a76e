/**
 * Syntax of schedule steps, as data, from which steps are parsed, printed, checked and generated. The steps themselves
 * are declared in `schedule/primitives.ts`; none is known by name here.
 */
import type { StepName } from './nodes.ts'

/** A step that begins with a keyword; most keywords have one form. */
export interface StepSyntax {
  readonly word: string
  readonly forms: readonly (readonly Syntax[])[]
}

/** A syntax element of a step: a keyword or sign, a field, or an optional sequence. */
export type Syntax =
  | string
  | { readonly field: string; readonly value: ValueSyntax }
  | { readonly optional: readonly Syntax[] }

/** The syntax of a step's form as text: `split LOOP by N -> (NAME, …)`. */
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
  /** `i`, `nest.i`; `handles`: steps as data may pass a loop handle, for loops but not for iterators. */
  | { readonly kind: 'loop'; readonly handles: boolean }
  | { readonly kind: 'name'; readonly of: StepName }
  /** An integer expression; `operand`: one next to an operator, so compound expressions need parentheses. */
  | { readonly kind: 'integer'; readonly operand: boolean }
  /** The position at which a loop is divided: after a nested loop, or after a number of statements. */
  | { readonly kind: 'place' }
  /** `i to block.x` */
  | { readonly kind: 'binding' }
  /** A keyword or sign with a value. */
  | { readonly kind: 'word'; readonly text: string; readonly means: string | boolean }
  /** A memory or an instruction, with arguments. */
  | { readonly kind: 'instance'; readonly of: 'memory' | 'instr' }
  | ListSyntax
  /** An operand available only in steps as data. */
  | { readonly kind: 'data'; readonly is: (x: unknown) => boolean; readonly expected: string }

export interface ListSyntax {
  readonly kind: 'list'
  readonly of: ValueSyntax
  readonly parentheses: boolean
  /** The noun for one item. */
  readonly what: string
  /**
   * The number of items: fixed, or a multiple of the length of another field's list. `least`: minimum for steps as
   * data.
   */
  readonly count?: number | { readonly times: number; readonly field: string } | undefined
  readonly least?: number | undefined
}
