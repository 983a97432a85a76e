/** Syntax checks beyond the grammar: keywords of a set, numbers of items, ranges of literals. */
import { type Advice, type Diagnostic, fail, failAt } from '../diagnostics/diagnostic.ts'
import { nameText } from '../diagnostics/expect-argument.ts'
import { typeMeant } from '../diagnostics/foreign-names.ts'
import { type Span, spanAt } from '../diagnostics/span.ts'
import type { BindTarget, Expr, Ident, Monoid, NumberLit, Param } from '../nodes/nodes.ts'
import { BIND_TARGETS, SCALAR_TYPES } from '../nodes/nodes.ts'
import { quantity } from '../print/quantity.ts'
import { MAX_HEIGHT, rejectDepth } from './lexical-scan.ts'

/** Computes the height of expression trees, and rejects those that could overflow the stack of recursive passes. */
export class Heights {
  private readonly heights = new WeakMap<Expr, number>()

  recordHeight<T extends Expr>(e: T, parts: readonly Expr[]): T {
    let height = 0
    for (const p of parts) height = Math.max(height, this.heights.get(p) ?? 0)
    if (height >= MAX_HEIGHT) rejectDepth(e.span)
    this.heights.set(e, height + 1)
    return e
  }
}

/** The identifier as one of a few keywords, such as a type. @throws SptError `parse/type` */
export function typeName<T extends string>(
  id: Ident,
  types: readonly T[],
): { readonly name: T; readonly span: Span } {
  const match = types.find((t) => t === id.name)
  if (match) return { name: match, span: id.span }
  const hint = typeMeant(id.name, types)
  failAt('parse/type', id.span, {
    message: `there is no type \`${id.name}\` here`,
    lookup: { name: id.name, candidates: types },
    ...(hint && { hint }),
  })
}

export function bindTarget(text: string, span: Span): BindTarget {
  const name = BIND_TARGETS.find((t) => t === text)
  if (name) return name
  fail({ code: 'parse/bind-target', ...unknownAxis(text), span })
}

/** A hardware axis that does not exist; those of CUDA C are called `threadIdx.x`. */
export function unknownAxis(text: unknown): Pick<Diagnostic, 'message'> & Advice {
  const cudaName = BIND_TARGETS.find((t) => t.replace('.', 'Idx.') === text)
  return {
    message: `unknown axis \`${nameText(text)}\``,
    ...(cudaName
      ? { hint: `did you mean \`${cudaName}\`?` }
      : {
          lookup: { name: nameText(text), candidates: BIND_TARGETS, SCALAR_TYPES },
          expected: BIND_TARGETS.join(', '),
        }),
  }
}

/** A list in the source: the noun for its items, their number, and its location. */
interface SourceList {
  readonly what: string
  readonly length: number
  readonly span: Span
}

/** Checks that two lists have the same length. @throws SptError `parse/arity` */
export function checkSameLength(expected: SourceList, kinds: SourceList): void {
  if (expected.length === kinds.length) return
  failAt('parse/arity', kinds.span, {
    message: `${quantity(expected.length, expected.what)}, but ${quantity(kinds.length, kinds.what)}`,
    labels: [{ span: expected.span, text: `the ${expected.what}${expected.length === 1 ? '' : 's'}` }],
    expected: `a ${kinds.what} for each ${expected.what}`,
  })
}

/** Checks that the names after `->` are as many as the loops that the step creates. @throws SptError `parse/arity` */
export function checkNewNames(names: readonly Ident[], loops: number, step: Span): void {
  if (names.length === loops) return
  failAt('parse/arity', spanAt(step, names[0]!.span.start, names.at(-1)!.span.end), {
    message: `this step makes ${loops} loops and names ${names.length}`,
    expected: `${loops} names after \`->\``,
    labels: [{ span: step, text: 'the step' }],
  })
}

export function numberLiteral(text: string, span: Span): NumberLit {
  const value = Number(text)
  const float = /[.eE]/.test(text)
  if (float ? !Number.isFinite(value) : !Number.isSafeInteger(value))
    failAt('parse/number', span, {
      message: `\`${text}\` is too large`,
      hint: float
        ? 'for infinity, write `inf`'
        : 'for a large floating-point number, write a point or an exponent',
    })
  return { kind: 'number', value, float, span }
}

/** The kinds of iterators, one letter each. @throws SptError `parse/iterator-kinds` */
export function iterKinds(letters: Ident | null, iterators: number, missing: Span): readonly ('S' | 'R')[] {
  const kinds = letters?.name ?? ''
  if (kinds.length !== iterators || !/^[SR]*$/.test(kinds))
    failAt('parse/iterator-kinds', letters?.span ?? missing, {
      message: letters
        ? `\`${kinds}\` does not set the role of ${quantity(iterators, 'iterator')}`
        : 'missing roles of the iterators',
      expected:
        iterators === 0
          ? 'no `as`: there are no iterators'
          : `\`as\` and ${quantity(iterators, 'letter')}, each \`S\` or \`R\``,
      hint: kinds.includes('T')
        ? 'rounds have a single iterator and are not in another iteration: `iterate NAME [t] as T { iterate … }`'
        : '`S` where different values write different elements, `R` where the values combine through a reducer',
    })
  return [...kinds] as ('S' | 'R')[]
}

/** An option after a buffer or an operand; options may come in any order. */
export interface Option {
  readonly key: 'fill' | 'accumulate' | 'packed' | 'aligned' | 'ascending' | 'mapped' | 'fenced'
  readonly value: unknown
  readonly span: Span
}

/** Reports a keyword that is written or given twice. */
export const rejectRepeated = (
  word: string,
  how: 'written' | 'given',
  span: Span,
  hint = `remove the second \`${word}\``,
): never => failAt('parse/duplicate', span, { message: `\`${word}\` is ${how} twice`, hint })

/** The value of an option, `null` if absent. @throws SptError if it is given twice */
export function option<T>(options: readonly Option[], key: Option['key']): T | null {
  const [first, second] = options.filter((o) => o.key === key)
  if (second) rejectRepeated(key, 'given', second.span)
  return first ? (first.value as T) : null
}

export function monoidField({ name, type, span }: Param): Monoid['fields'][number] {
  if (type.name !== 'size') return { name, type: typeName(type, SCALAR_TYPES), span }
  failAt('parse/type', type.span, { message: 'a component cannot be a `size`', hint: 'write `i32`' })
}
