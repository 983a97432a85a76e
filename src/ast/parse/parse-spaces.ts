/** Spaces of schedules: parse actions for the grammar. */

import { failAt, type Span } from '../diagnostics/diagnostic.ts'
import type * as ast from '../nodes/nodes.ts'
import { Writable } from './comments.ts'
import {
  type Actions,
  all,
  type Braces,
  blockItem,
  get,
  item,
  list,
  maybe,
  maybeList,
  pathOf,
  register,
  slotsOf,
  spanOf,
} from './parse-context.ts'
import type { OfKernel } from './parse-schedules.ts'
import { checkGroups } from './step-groups.ts'

export const spaces: Actions = {
  Choice_searched(_, kernel, _dot, name, params, _choose, _by, _search, open, items, close) {
    const innerNodes = all<ast.SpaceItem>(items)
    const node: ast.Space = {
      kind: 'choice',
      by: 'search',
      ...get<OfKernel>(kernel),
      name: get(name),
      params: maybeList(params),
      items: innerNodes,
      span: spanOf(this),
    }
    return blockItem(node, { open, close }, slotsOf(innerNodes))
  },
  SpaceItem_decision: (node, _) => get(node),
  FormatDecision(_, name, _in, options) {
    return item<ast.FormatDecision>({
      kind: 'formats',
      name: get(name),
      options: list(options),
      span: spanOf(this),
    })
  },
  FormatOption_parts(_, parts, _close, where): ast.FormatOption {
    return { parts: get(parts), where: maybe(where), span: spanOf(this) }
  },
  FormatOption_use(use, where): ast.FormatOption {
    const part = { ...get<ast.FormatUse>(use), where: null }
    return { parts: [part], where: maybe(where), span: spanOf(this) }
  },
  NumberDecision_list(name, _in, first, ops, others, where) {
    const otherWidths = all<Omit<ast.Width, 'doubling'>>(others)
    const widths = [
      { ...get<Omit<ast.Width, 'doubling'>>(first), doubling: false },
      ...otherWidths.map((w, k) => ({ ...w, doubling: ops.children[k]!.sourceString === '..' })),
    ]
    return item<ast.NumberDecision>({
      kind: 'numbers',
      name: get(name),
      values: { kind: 'list', widths },
      where: maybe(where),
      span: spanOf(this),
    })
  },
  NumberDecision_range(name, _from, from, _to, to, _by, by, where) {
    return item<ast.NumberDecision>({
      kind: 'numbers',
      name: get(name),
      values: { kind: 'range', from: get(from), to: get(to), by: maybe(by) },
      where: maybe(where),
      span: spanOf(this),
    })
  },
  Only(_, cond) {
    return item<ast.Only>({ kind: 'only', cond: get(cond), span: spanOf(this) })
  },
  SpaceStep(node, _) {
    const step = get<ast.SpaceStep>(node)
    return step.kind === 'each' || step.kind === 'either' ? step : item({ ...step, span: spanOf(node) })
  },
  UseAlternatives: (_, options) => ({ kind: 'uses', options: list(options) }),
  UseOption(schedule, args, results, where): ast.UseOption {
    return {
      schedule: get(schedule),
      args: checkGroups(maybeList<ast.UseArgument>(args)),
      results: maybeList(results),
      where: maybe(where),
      span: spanOf(this),
    }
  },
  Either(_, options) {
    const groups = list<ast.StepGroup>(options)
    const node: ast.Either = { kind: 'either', groups, span: spanOf(this) }
    const blocks = slotsOf(groups).flatMap((s) => s.blocks)
    register(node, { span: node.span, blocks, trivia: new Writable() })
    return node
  },
  StepGroup(open, steps, close, where) {
    const innerNodes = all<ast.SpaceStep>(steps)
    const node: ast.StepGroup = { steps: innerNodes, where: maybe(where), span: spanOf(this) }
    return blockItem(node, { open, close }, slotsOf(innerNodes))
  },
}

// Choices among schedules: parse actions for the grammar.

/** The schedule calls after a branch's condition. */
interface BranchCalls {
  readonly calls: readonly ast.ScheduleCall[]
  /** The braces of `fastest { … }`. */
  readonly braces: Braces | null
}

function branchNode(cond: ast.Expr | null, { calls, braces }: BranchCalls, span: Span): ast.Branch {
  const node: ast.Branch = { cond, isFastest: braces !== null, calls, span }
  return braces ? blockItem(node, braces, slotsOf(calls)) : item(node)
}

/** The part of a choice before its branches. */
type Head = Omit<ast.Dispatch, 'kind' | 'by' | 'branches' | 'trivia'>

function choiceNode(list: Parameters<typeof all>[0], braces: Braces, head: Head): ast.Dispatch {
  const branches = all<ast.Branch>(list)
  const otherwise = branches.findIndex((b) => b.cond === null)
  const misplaced = otherwise < 0 ? undefined : branches[otherwise + 1]
  if (misplaced)
    failAt('parse/after-otherwise', misplaced.span, {
      message: 'nothing is left to choose after `otherwise`',
      labels: [{ span: branches[otherwise]!.span, text: 'this is for all others' }],
      hint: 'move `otherwise` to the end',
    })
  return blockItem<ast.Dispatch>(
    { kind: 'choice', by: 'rules', ...head, branches },
    braces,
    slotsOf(branches),
  )
}

export const choices: Actions = {
  Choice_chosen(_, kernel, _dot, name, params, _choose, open, list, close) {
    return choiceNode(
      list,
      { open, close },
      {
        ...get<OfKernel>(kernel),
        name: get(name),
        params: maybeList(params),
        isExtension: false,
        table: null,
        span: spanOf(this),
      },
    )
  },
  Choice_stored(_, kernel, _dot, name, params, _choose, _from, path) {
    return item<ast.Dispatch>({
      kind: 'choice',
      by: 'rules',
      ...get<OfKernel>(kernel),
      name: get(name),
      params: maybeList(params),
      isExtension: false,
      table: pathOf(path),
      branches: [],
      span: spanOf(this),
    })
  },
  Choice_extended(_, kernel, _dot, name, _extends, open, list, close) {
    return choiceNode(
      list,
      { open, close },
      {
        ...get<OfKernel>(kernel),
        name: get(name),
        params: [],
        isExtension: true,
        table: null,
        span: spanOf(this),
      },
    )
  },
  Branch: (node, _) => get(node),
  When(_, _open, cond, _close, called) {
    return branchNode(get(cond), get(called), spanOf(this))
  },
  Otherwise(_, called) {
    return branchNode(null, get(called), spanOf(this))
  },
  Called_fastest: (_, open, list, close): BranchCalls => ({ calls: all(list), braces: { open, close } }),
  Called_one: (call): BranchCalls => ({ calls: [get(call)], braces: null }),
  CalledItem: (call, _) => get(call),
  ScheduleCall(schedule, args) {
    return item<ast.ScheduleCall>({ schedule: get(schedule), args: maybeList(args), span: spanOf(this) })
  },
  NamedArgs(_, args, _close) {
    const namedArgs = list<ast.NamedArg>(args)
    const firstNamed = namedArgs.findIndex((a) => a.name !== null)
    const misplaced = firstNamed < 0 ? undefined : namedArgs.find((a, k) => k > firstNamed && a.name === null)
    if (misplaced)
      failAt('parse/argument-order', misplaced.span, {
        message: 'an argument without a name follows one with a name',
        labels: [{ span: namedArgs[firstNamed]!.span, text: 'named here' }],
        hint: 'move the argument to the front, or name the argument',
      })
    return namedArgs
  },
  NamedArg_named(name, _, value): ast.NamedArg {
    return { name: get(name), value: get(value), span: spanOf(this) }
  },
  NamedArg_place(value): ast.NamedArg {
    return { name: null, value: get(value), span: spanOf(this) }
  },
}
