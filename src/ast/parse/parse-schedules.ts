/** Schedules: parse actions for the grammar. */

import * as ast from '../nodes/nodes.ts'
import { bindTarget, typeName } from './checks.ts'
import { type Actions, between, get, item, line, part, spanOf, word } from './parse-context.ts'
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
  StepAs: part<ast.AsStep>('as', 'buffer', '', 'parts', 'live'),
  Live: part<ast.Live>(null, '', 'inPlace?', 'capacity', 'carried*'),
  Capacity: part<ast.Capacity>(null, '', 'positions', 'inAll?', ''),
  AsPart: part<ast.AsPart>(null, '...', 'where'),
  StepEach: line<ast.EachStep>('each', '', 'what=', '', 'buffer', '', 'as', '{steps}'),
  StepMerge: part<ast.MergePartsStep>('merge_parts', '', '', '', 'buffer'),
  StepUse: part<ast.UseStep>('use', '', 'schedule', 'args*', 'results*'),
  UseArgs: (_, args, _close) => checkGroups(get<ast.UseArgument[]>(args)),
  UseArg_nests(nests, _, name): ast.UseArgument {
    const field = get<ast.Ident>(name)
    const items = get<ast.Ident[]>(nests).map((object): ast.Field => {
      return { kind: 'field', object, field, span: between(object.span, field.span) }
    })
    return { kind: 'group', items, span: spanOf(this) }
  },
  UseArg_loops(loops): ast.UseArgument {
    const items = get<ast.LoopRef[]>(loops).map(({ nest, name, span }): ast.Expr => {
      return nest
        ? { kind: 'field', object: nest, field: name, span }
        : { kind: 'name', name: name.name, span }
    })
    return { kind: 'group', items, span: spanOf(this) }
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
