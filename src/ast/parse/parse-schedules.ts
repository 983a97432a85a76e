/** Schedules, choices among schedules, and spaces of schedules: parse actions for the grammar. */

import type { Node } from 'ohm-js'
import { failAt, type Span } from '../diagnostics/diagnostic.ts'
import * as ast from '../nodes/nodes.ts'
import { bindTarget, typeName } from './checks.ts'
import { Writable } from './comments.ts'
import type { Actions, Braces } from './parse-context.ts'
import {
  between,
  blockItem,
  checked,
  get,
  getList,
  item,
  line,
  part,
  register,
  slotsOf,
  spanOf,
  word,
} from './parse-context.ts'
import { checkGroups, groupOf, mapGroup } from './step-groups.ts'

type LoopValue = Extract<ast.StepValue, { kind: 'loop' }>

const loopIn = (nest: ast.Ident, name: ast.Ident): ast.LoopRef => ({
  nest,
  name,
  span: between(nest.span, name.span),
})
const loopValue = (loop: ast.LoopRef): LoopValue => ({ kind: 'loop', loop })
const loopList = (loops: readonly ast.LoopRef[]): ast.StepValue => ({
  kind: 'list',
  parentheses: true,
  items: loops.map(loopValue),
})

export const schedules: Actions = {
  OfKernel: part<ast.ScheduleName>(null, 'kernel', 'types*'),
  Schedule: line<ast.Schedule>('schedule', '', '...', '', 'name', 'params*', '{steps}'),
  ScheduleParam(name, _, kind, _eq, value): ast.ScheduleParam {
    const [given] = kind.children
    const paramKind = given ? typeName(word(given), ast.PARAM_KINDS).name : 'size'
    return { name: get(name), kind: paramKind, default: get(value), span: spanOf(this) }
  },
  Function: line<ast.ScheduleFunction>('function', '', 'name', 'params', 'results*', '{steps}'),
  Step(node, _) {
    const step = get<ast.Step>(node)
    return step.kind === 'each' ? step : item({ ...step, span: spanOf(node) })
  },
  StepAs: part<ast.AsStep>('as', 'buffer', '', 'parts', 'live', 'carried*'),
  Live: part<ast.Live>(null, '', 'inPlace?', 'capacity'),
  Capacity: part<ast.Capacity>(null, '', 'positions', 'inAll?', ''),
  AsPart: part<ast.AsPart>(null, '...', 'where'),
  StepEach: line<ast.EachStep>('each', '', 'what=', '', 'buffer', '', 'as', '{steps}'),
  StepMerge: part<ast.MergePartsStep>('merge_parts', '', '', '', 'buffer'),
  StepUse: part<ast.UseStep>('use', '', '...'),
  UsedCall(callee, schedule, args, results, call): ast.UsedCall {
    const [kernel, at] = [callee, call].map((n) => get<ast.Ident | null>(n))
    const use = { schedule: get<ast.Ident>(schedule), args: getList<ast.NamedArg<ast.UseArgument>>(args) }
    return { ...use, results: getList(results), ...(kernel && { kernel }), ...(at && { at }) }
  },
  UseArgs: (_, args, _close) => checkGroups(checkOrder(get<ast.NamedArg<ast.UseArgument>[]>(args))),
  UseArg_named: part<ast.NamedArg>(null, 'name', '', 'value'),
  UseArg_place: part<ast.NamedArg>({ name: null }, 'value'),
  UseValue_nests(nests, _, name): ast.UseArgument {
    const field = get<ast.Ident>(name)
    const items = get<ast.Ident[]>(nests).map((object): ast.Field => {
      return { kind: 'field', object, field, span: between(object.span, field.span) }
    })
    return { kind: 'group', items, span: spanOf(this) }
  },
  UseValue_loops(loops): ast.UseArgument {
    const items = get<ast.LoopRef[]>(loops).map(({ nest, name, span }): ast.Expr => {
      return nest
        ? { kind: 'field', object: nest, field: name, span }
        : { kind: 'name', name: name.name, span }
    })
    return { kind: 'group', items, span: spanOf(this) }
  },
  UseValue_member(label, loop): ast.UseArgument {
    const { nest, name, span } = get<ast.LoopRef>(loop)
    const owner = `${label.sourceString}${(nest ?? name).name}`
    const own: ast.Name = { kind: 'name', name: owner, span: between(spanOf(label), (nest ?? name).span) }
    return nest ? { kind: 'field', object: own, field: name, span } : own
  },
  memberName(_labels, _copies, _dots, _name) {
    return word(this)
  },
  nestName(_labels, _name) {
    return word(this)
  },
  callName(_labels, _innerCopies, _dots, _name, _copies) {
    return word(this)
  },
  Loop(first, _, second): ast.LoopRef {
    const name = get<ast.Ident | null>(second)
    const id = get<ast.Ident>(first)
    return name ? { nest: id, name, span: spanOf(this) } : { nest: null, name: id, span: spanOf(this) }
  },
  LoopGroup_nests(nests, _, name) {
    const loops = get<ast.Ident[]>(nests).map((nest) => loopIn(nest, get(name)))
    return groupOf(loops.map(loopValue), spanOf(this))
  },
  LoopGroup_loops(loops) {
    return groupOf(get<ast.LoopRef[]>(loops).map(loopValue), spanOf(this))
  },
  LoopGroup_one: (loop) => loopValue(get(loop)),
  LoopLists_nests(nests, _, _open, names, _close) {
    const loopNames = get<ast.Ident[]>(names)
    const listIn = (nest: ast.Ident) => loopList(loopNames.map((name) => loopIn(nest, name)))
    return groupOf(get<ast.Ident[]>(nests).map(listIn), spanOf(this))
  },
  LoopLists_one: (_, loops, _close) => loopList(get(loops)),
  NameGroup_one: (name) => [get(name)],
  ExprGroup_one: (value) => [get(value)],
  PrimaryGroup_one: (value) => [get(value)],
  Binding(loops, _, target): ast.StepValue {
    const to = bindTarget(target.sourceString, spanOf(target))
    return mapGroup(get(loops), (v) => ({ kind: 'binding', loop: (v as LoopValue).loop, to }))
  },
  Place_count(digits): ast.StepValue {
    return { kind: 'word', text: digits.sourceString, means: Number(digits.sourceString) }
  },
  Place_nest: (name): ast.StepValue => ({ kind: 'name', of: 'nest', name: get(name) }),
}

// Spaces of schedules.

type Range = Extract<ast.NumberList, { kind: 'range' }>

export const spaces: Actions = {
  Choice_searched: line<ast.Space>(
    { kind: 'choice', by: 'search' },
    ...(['', '...', '', 'name', 'params*', '', '', '', '{items}'] as const),
  ),
  FormatDecision: line<ast.FormatDecision>('formats', '', 'name', '', 'options'),
  FormatOption_parts: part<ast.FormatOption>(null, '', 'parts', '', 'where'),
  FormatOption_use(use, where): ast.FormatOption {
    const only = { ...get<ast.FormatUse>(use), where: null }
    return { parts: [only], where: get(where), span: spanOf(this) }
  },
  NumberDecision: line<ast.NumberDecision>('numbers', 'name', 'values', 'where'),
  NumberList_list: (_, widths): ast.NumberList => ({ kind: 'list', widths: get(widths) }),
  NumberList_range: part<Range>('range', '', 'from', '', 'to', '', 'by'),
  Only: line<ast.Only>('only', '', 'cond'),
  SpaceStep(node, _) {
    const step = get<ast.SpaceStep>(node)
    return step.kind === 'each' || step.kind === 'either' ? step : item({ ...step, span: spanOf(node) })
  },
  UseAlternatives: part<ast.UseAlternatives>('uses', '', 'options'),
  UseOption: part<ast.UseOption>(null, '...', 'where'),
  Either(_, options) {
    const groups = get<ast.StepGroup[]>(options)
    const node: ast.Either = { kind: 'either', groups, span: spanOf(this) }
    const blocks = slotsOf(groups).flatMap((s) => s.blocks)
    register(node, { span: node.span, blocks, trivia: new Writable() })
    return node
  },
  StepGroup: line<ast.StepGroup>(null, '{steps}', 'where'),
}

/** Returns the arguments: those with names come last. @throws SptError `parse/argument-order` */
function checkOrder<V>(args: readonly ast.NamedArg<V>[]): readonly ast.NamedArg<V>[] {
  const firstNamed = args.findIndex((a) => a.name !== null)
  const misplaced = firstNamed < 0 ? undefined : args.find((a, k) => k > firstNamed && a.name === null)
  if (misplaced)
    failAt('parse/argument-order', misplaced.span, {
      message: 'an argument without a name follows one with a name',
      labels: [{ span: args[firstNamed]!.span, text: 'named here' }],
      hint: 'move the argument to the front, or name the argument',
    })
  return args
}

// Choices among schedules.

const DISPATCH = { kind: 'choice', by: 'rules', isExtension: false, table: null } as const

function checkBranches({ branches }: ast.Dispatch): void {
  checkOtherwise(branches)
  const stored = branches.find((b) => b.origin)?.origin
  if (stored)
    failAt('table/field', stored.span, {
      message: 'only the branches of a dispatch table have an origin',
      hint: `remove \`from "${stored.value}"\``,
    })
}

function checkOtherwise(branches: readonly ast.Branch[]): void {
  const otherwise = branches.findIndex((b) => b.cond === null)
  const misplaced = otherwise < 0 ? undefined : branches[otherwise + 1]
  if (misplaced)
    failAt('parse/after-otherwise', misplaced.span, {
      message: 'nothing is left to choose after `otherwise`',
      labels: [{ span: branches[otherwise]!.span, text: 'this is for all others' }],
      hint: 'move `otherwise` to the end',
    })
}

/** A branch with a schedule call, or with several in braces (`fastest`). */
function branch(cond: ast.Expr | null, called: Node, from: Node, span: Span): ast.Branch {
  const calls = get<ast.ScheduleCall | Braces<ast.ScheduleCall>>(called)
  const origin = get<ast.Path | null>(from)
  if (!('items' in calls)) return item({ cond, isFastest: false, calls: [calls], origin, span })
  return blockItem({ cond, isFastest: true, calls: calls.items, origin, span }, calls)
}

export const choices: Actions = {
  Choice_chosen: checked(
    line<ast.Dispatch>(DISPATCH, '', '...', '', 'name', 'params*', '', '{branches}'),
    checkBranches,
  ),
  Choice_stored: checked(
    line<ast.Dispatch>(
      () => ({ ...DISPATCH, branches: [] }),
      ...(['', '...', '', 'name', 'params*', '', '', 'table'] as const),
    ),
    ({ table, kernel }: ast.Dispatch) => {
      if (table!.value.endsWith('.json'))
        failAt('table/version', table!.span, {
          message: 'dispatch tables are programs now, not JSON',
          expected: `"${table!.value.replace(/json$/, 'spt')}"`,
          hint: `write the file again: spt tune FILE --kernel ${kernel.name} … --generalise ${kernel.name}.spt`,
        })
    },
  ),
  Choice_extended: checked(
    line<ast.Dispatch>(
      () => ({ ...DISPATCH, params: [], isExtension: true }),
      ...(['', '...', '', 'name', '', '{branches}'] as const),
    ),
    checkBranches,
  ),
  When(_, _open, cond, _close, called, from) {
    return branch(get(cond), called, from, spanOf(this))
  },
  Otherwise(_, called, from) {
    return branch(null, called, from, spanOf(this))
  },
  Table: checked(
    line<ast.DispatchTable>('table', '', '...', '', 'hash', '{items}'),
    ({ items }: ast.DispatchTable) => checkOtherwise(items.filter((x) => 'cond' in x)),
  ),
  Origin: line<ast.Origin>(null, '', 'name', 'status', '{fields}'),
  OriginField(name, values, _) {
    return item<ast.OriginField>({
      name: get(name),
      values: get(values),
      span: between(spanOf(name), spanOf(values)),
    })
  },
  ScheduleCall: line<ast.ScheduleCall>(null, 'schedule', 'args*'),
  NamedArgs: (_, args, _close) => checkOrder(get<ast.NamedArg[]>(args)),
  NamedArg_named: part<ast.NamedArg>(null, 'name', '', 'value'),
  NamedArg_place: part<ast.NamedArg>({ name: null }, 'value'),
}
