/** Steps that begin with a keyword: grammar rules and parse actions generated from their syntax. */
import type { Node } from 'ohm-js'
import type { Span } from '../diagnostics/diagnostic.ts'
import type { Expr, Ident, LoopRef, StepArgument, StepValue } from '../nodes/nodes.ts'
import type { Instance } from '../nodes/nodes-instr.ts'
import type { ListSyntax, StepSyntax, Syntax, ValueSyntax } from '../nodes/step-syntax.ts'
import { checkNewNames, checkSameLength } from './checks.ts'
import { type Actions, between, get, spanOf } from './parse-context.ts'
import { checkGroups, groupOf } from './step-groups.ts'

// Rules --------------------------------------------------------------------------------------------------------

/** A grammar expression in the format of Ohm's bundles; the second entry is its source location. */
type Recipe = readonly [operator: string, place: null, ...operands: readonly unknown[]]

const applyRule = (rule: string, ...operands: readonly Recipe[]): Recipe => ['app', null, rule, operands]
const terminal = (text: string): Recipe => ['terminal', null, text]
const token = (text: string): Recipe =>
  /[a-z]/.test(text) ? applyRule('kw', terminal(text)) : terminal(text)
const seq = (elements: readonly Syntax[]): Recipe => ['seq', null, ...elements.map(recipe)]

function recipe(s: Syntax): Recipe {
  if (typeof s === 'string') return token(s)
  return 'optional' in s ? ['opt', null, seq(s.optional)] : valueRecipe(s.value)
}

const RULES = { loop: 'Loop', name: 'memberName', place: 'Place', binding: 'Binding', instance: 'Instance' }

function itemRecipe(v: Exclude<ValueSyntax, ListSyntax>): Recipe {
  if (v.kind === 'word') return token(v.text)
  if (v.kind === 'integer') return applyRule(v.operand ? 'Primary' : 'Expr')
  if (v.kind === 'data') throw new Error('data have no text')
  return applyRule(v.kind === 'name' && v.of.startsWith('new ') ? 'ident' : RULES[v.kind])
}

function valueRecipe(v: ValueSyntax): Recipe {
  if (v.kind === 'loop') return applyRule('LoopGroup')
  if (v.kind === 'name') return applyRule('NameGroup')
  if (v.kind === 'integer') return applyRule(v.operand ? 'PrimaryGroup' : 'ExprGroup')
  if (v.kind !== 'list') return itemRecipe(v)
  if (isLoopLists(v)) return applyRule('LoopLists')
  const list = applyRule('List', itemRecipe(v.of as Exclude<ValueSyntax, ListSyntax>))
  return v.parentheses ? ['seq', null, terminal('('), list, terminal(')')] : list
}

/** True for a parenthesised list of loops, which a group of loop nests may precede: `(a, b).(i, j)`. */
const isLoopLists = (v: ValueSyntax): boolean => v.kind === 'list' && v.parentheses && v.of.kind === 'loop'

const stepForms = (steps: readonly StepSyntax[]) =>
  steps.flatMap(({ word, forms }) =>
    forms.map((syntax, k) => ({ rule: `Step_${word}_${k + 1}`, word, syntax })),
  )

/** A grammar rule for each form of a step; `StepWord`, which the grammar declares, becomes their alternation. */
export function stepRules(steps: readonly StepSyntax[]): Readonly<Record<string, Recipe>> {
  const forms = stepForms(steps)
  const rules = forms.map(({ rule, word, syntax }): [string, Recipe] => [
    rule,
    ['define', null, null, [], seq([word, ...syntax])],
  ])
  const alternatives = ['alt', null, ...forms.map(({ rule }) => applyRule(rule))]
  return { ...Object.fromEntries(rules), StepWord: ['override', null, null, [], alternatives] }
}

// Nodes --------------------------------------------------------------------------------------------------------

export function stepActions(steps: readonly StepSyntax[]): Actions {
  const forms = new Map(stepForms(steps).map((f) => [f.rule, f]))
  return {
    StepWord(node) {
      const { word, syntax } = forms.get(node.ctorName)!
      const [, ...nodes] = node.children
      const args = readArguments(syntax, nodes, { step: spanOf(node), lists: new Map() })
      checkGroups(args)
      return { kind: 'step', word, args }
    },
  }
}

interface ReadContext {
  readonly step: Span
  /** The lists read so far, by field. */
  readonly lists: Map<string, { readonly what: string; readonly length: number; readonly span: Span }>
}

const arity = (s: Syntax): number => {
  if (typeof s === 'string') return 1
  if ('optional' in s) return s.optional.reduce((n, x) => n + arity(x), 0)
  return s.value.kind === 'list' && s.value.parentheses && !isLoopLists(s.value) ? 3 : 1
}

function readArguments(syntax: readonly Syntax[], nodes: readonly Node[], cx: ReadContext): StepArgument[] {
  let index = 0
  return syntax.flatMap((s, k) => {
    const keyword = typeof syntax[k - 1] === 'string' ? nodes[index - 1] : undefined
    const ownNodes = nodes.slice(index, index + arity(s))
    index += ownNodes.length
    if (typeof s === 'string') return [s]
    if ('field' in s) {
      const { field, value: v } = s
      return [
        {
          field,
          value: v.kind === 'list' ? readList(field, v, ownNodes, keyword, cx) : readGroup(v, ownNodes[0]!),
        },
      ]
    }
    const optionalNodes = ownNodes.flatMap((n) => n.children)
    return optionalNodes.length > 0 ? readArguments(s.optional, optionalNodes, cx) : []
  })
}

function readGroup(v: Exclude<ValueSyntax, ListSyntax>, node: Node): StepValue {
  if (v.kind === 'loop') return get<StepValue>(node)
  if (v.kind === 'integer') {
    const values = get<Expr[]>(node).map(
      (value): StepValue => ({ kind: 'integer', value, operand: v.operand }),
    )
    return groupOf(values, spanOf(node))
  }
  if (v.kind !== 'name') return readValue(v, node)
  const names = get<Ident[]>(node).map((name): StepValue => ({ kind: 'name', of: v.of, name }))
  return groupOf(names, spanOf(node))
}

function readValue(v: Exclude<ValueSyntax, ListSyntax>, node: Node): StepValue {
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
  syntax: ListSyntax,
  nodes: readonly Node[],
  keyword: Node | undefined,
  { step, lists }: ReadContext,
): StepValue {
  const { of: operands, parentheses, what, count } = syntax
  const value: StepValue = isLoopLists(syntax)
    ? get<StepValue>(nodes[0]!)
    : {
        kind: 'list',
        parentheses,
        items: nodes[parentheses ? 1 : 0]!.asIteration().children.map((n) =>
          readValue(operands as Exclude<ValueSyntax, ListSyntax>, n),
        ),
      }
  const [one] = value.kind === 'group' ? value.items : [value]
  const items = one?.kind === 'list' ? one.items : []
  const span = between(spanOf(keyword ?? nodes[0]!), spanOf(nodes.at(-1)!))
  const itemList = { what, length: items.length, span }
  lists.set(field, itemList)
  const relatedList = typeof count === 'object' ? lists.get(count.field)! : undefined
  const expectedCount = typeof count === 'object' ? count.times * relatedList!.length : count
  const names = items.flatMap((x) => (x.kind === 'name' && x.of === 'new loop' ? [x.name] : []))
  if (names.length > 0 && expectedCount !== undefined) checkNewNames(names, expectedCount, step)
  else if (relatedList) checkSameLength(relatedList, itemList)
  return value
}
