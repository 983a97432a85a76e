/** Steps that begin with a keyword: grammar rules and parse actions generated from their syntax. */
import type { Node } from 'ohm-js'
import { newNames, sameNumber } from './checks.ts'
import type { Span } from './diagnostic.ts'
import type { Expr, Ident, LoopRef, StepArgument, StepValue } from './nodes.ts'
import type { Instance } from './nodes-instr.ts'
import { type Actions, between, get, spanOf } from './parse-context.ts'
import type { ListSyntax, StepSyntax, Syntax, ValueSyntax } from './step-syntax.ts'

// Rules --------------------------------------------------------------------------------------------------------

/** A grammar expression in the format of Ohm's bundles; the second entry is its source location. */
type Recipe = readonly [operator: string, place: null, ...operands: readonly unknown[]]

const apply = (rule: string, ...of: readonly Recipe[]): Recipe => ['app', null, rule, of]
const terminal = (text: string): Recipe => ['terminal', null, text]
const token = (text: string): Recipe => (/[a-z]/.test(text) ? apply('kw', terminal(text)) : terminal(text))
const seq = (of: readonly Syntax[]): Recipe => ['seq', null, ...of.map(recipe)]

function recipe(s: Syntax): Recipe {
  if (typeof s === 'string') return token(s)
  return 'optional' in s ? ['opt', null, seq(s.optional)] : valueRecipe(s.value)
}

const RULES = { loop: 'Loop', name: 'ident', place: 'Place', binding: 'Binding', instance: 'Instance' }

function valueRecipe(v: ValueSyntax): Recipe {
  if (v.kind === 'word') return token(v.text)
  if (v.kind === 'integer') return apply(v.operand ? 'Primary' : 'Expr')
  if (v.kind === 'data') throw new Error('data have no text')
  if (v.kind !== 'list') return apply(RULES[v.kind])
  const list = apply('List', valueRecipe(v.of))
  return v.parentheses ? ['seq', null, terminal('('), list, terminal(')')] : list
}

const formsOf = (steps: readonly StepSyntax[]) =>
  steps.flatMap(({ word, forms }) =>
    forms.map((syntax, k) => ({ rule: `Step_${word}_${k + 1}`, word, syntax })),
  )

/** A grammar rule for each form of a step; `StepWord`, which the grammar declares, becomes their alternation. */
export function stepRules(steps: readonly StepSyntax[]): Readonly<Record<string, Recipe>> {
  const forms = formsOf(steps)
  const rules = forms.map(({ rule, word, syntax }): [string, Recipe] => [
    rule,
    ['define', null, null, [], seq([word, ...syntax])],
  ])
  const one = ['alt', null, ...forms.map(({ rule }) => apply(rule))]
  return { ...Object.fromEntries(rules), StepWord: ['override', null, null, [], one] }
}

// Nodes --------------------------------------------------------------------------------------------------------

export function stepActions(steps: readonly StepSyntax[]): Actions {
  const forms = new Map(formsOf(steps).map((f) => [f.rule, f]))
  return {
    StepWord(node) {
      const { word, syntax } = forms.get(node.ctorName)!
      const [, ...nodes] = node.children
      return { kind: 'step', word, args: readAll(syntax, nodes, { step: spanOf(node), lists: new Map() }) }
    },
  }
}

interface Reading {
  readonly step: Span
  /** The lists read so far, by field. */
  readonly lists: Map<string, { readonly what: string; readonly length: number; readonly span: Span }>
}

/** The number of parse nodes of a syntax element. */
const arity = (s: Syntax): number => {
  if (typeof s === 'string') return 1
  if ('optional' in s) return s.optional.reduce((n, x) => n + arity(x), 0)
  return s.value.kind === 'list' && s.value.parentheses ? 3 : 1
}

/** The step arguments in the parse nodes of a syntax. */
function readAll(syntax: readonly Syntax[], nodes: readonly Node[], cx: Reading): StepArgument[] {
  let at = 0
  return syntax.flatMap((s, k) => {
    const keyword = typeof syntax[k - 1] === 'string' ? nodes[at - 1] : undefined
    const own = nodes.slice(at, at + arity(s))
    at += own.length
    if (typeof s === 'string') return [s]
    if ('field' in s) {
      const { field, value: v } = s
      return [{ field, value: v.kind === 'list' ? readList(field, v, own, keyword, cx) : read(v, own[0]!) }]
    }
    const given = own.flatMap((n) => n.children)
    return given.length > 0 ? readAll(s.optional, given, cx) : []
  })
}

function read(v: Exclude<ValueSyntax, ListSyntax>, node: Node): StepValue {
  switch (v.kind) {
    case 'loop':
      return { kind: 'loop', loop: get<LoopRef>(node) }
    case 'name':
      return { kind: 'name', of: v.of, name: get<Ident>(node) }
    case 'integer':
      return { kind: 'integer', value: get<Expr>(node), operand: v.operand }
    case 'word':
      return { kind: 'word', text: v.text, means: v.means }
    case 'instance':
      return { kind: 'instance', of: v.of, use: get<Instance>(node) }
    default:
      return get<StepValue>(node)
  }
}

/** @param keyword the keyword before the list */
function readList(
  field: string,
  { of, parentheses, what, count }: ListSyntax,
  nodes: readonly Node[],
  keyword: Node | undefined,
  { step, lists }: Reading,
): StepValue {
  const items = nodes[parentheses ? 1 : 0]!.asIteration().children.map((n) =>
    read(of as Exclude<ValueSyntax, ListSyntax>, n),
  )
  const span = between(spanOf(keyword ?? nodes[0]!), spanOf(nodes.at(-1)!))
  const own = { what, length: items.length, span }
  lists.set(field, own)
  const other = typeof count === 'object' ? lists.get(count.field)! : undefined
  const wanted = typeof count === 'object' ? count.times * other!.length : count
  const names = items.flatMap((x) => (x.kind === 'name' && x.of === 'new loop' ? [x.name] : []))
  if (names.length > 0 && wanted !== undefined) newNames(names, wanted, step)
  else if (other) sameNumber(other, own)
  return { kind: 'list', parentheses, items }
}
