/** Choices among schedules: parse actions for the grammar. */
import { fail, type Span } from './diagnostic.ts'
import type * as ast from './nodes.ts'
import {
  type Actions,
  all,
  type Braces,
  blockItem,
  get,
  item,
  list,
  maybeList,
  slotsOf,
  spanOf,
} from './parse-context.ts'

/** The schedule calls after a branch's condition. */
interface Called {
  readonly calls: readonly ast.ScheduleCall[]
  /** The braces of `fastest { … }`. */
  readonly braces: Braces | null
}

function branch(cond: ast.Expr | null, { calls, braces }: Called, span: Span): ast.Branch {
  const node: ast.Branch = { cond, isFastest: braces !== null, calls, span }
  return braces ? blockItem(node, braces, slotsOf(calls)) : item(node)
}

/** The part of a choice before its branches. */
type Head = Omit<ast.Choice, 'kind' | 'branches' | 'trivia'>

function choice(list: Parameters<typeof all>[0], braces: Braces, head: Head): ast.Choice {
  const branches = all<ast.Branch>(list)
  const rest = branches.findIndex((b) => b.cond === null)
  const late = rest < 0 ? undefined : branches[rest + 1]
  if (late)
    fail({
      code: 'parse/after-otherwise',
      message: 'nothing is left to choose after `otherwise`',
      span: late.span,
      labels: [{ span: branches[rest]!.span, text: 'this is for all others' }],
      hint: 'move `otherwise` to the end',
    })
  return blockItem<ast.Choice>({ kind: 'choice', ...head, branches }, braces, slotsOf(branches))
}

export const choices: Actions = {
  Choice_chosen(_, kernel, _dot, name, params, _choose, open, list, close) {
    return choice(
      list,
      { open, close },
      {
        kernel: get(kernel),
        name: get(name),
        params: maybeList(params),
        isExtension: false,
        span: spanOf(this),
      },
    )
  },
  Choice_extended(_, kernel, _dot, name, _extends, open, list, close) {
    return choice(
      list,
      { open, close },
      { kernel: get(kernel), name: get(name), params: [], isExtension: true, span: spanOf(this) },
    )
  },
  Branch: (node, _) => get(node),
  When(_, _open, cond, _close, called) {
    return branch(get(cond), get(called), spanOf(this))
  },
  Otherwise(_, called) {
    return branch(null, get(called), spanOf(this))
  },
  Called_fastest: (_, open, list, close): Called => ({ calls: all(list), braces: { open, close } }),
  Called_one: (call): Called => ({ calls: [get(call)], braces: null }),
  CalledItem: (call, _) => get(call),
  ScheduleCall(schedule, args) {
    return item<ast.ScheduleCall>({ schedule: get(schedule), args: maybeList(args), span: spanOf(this) })
  },
  NamedArgs(_, args, _close) {
    const all = list<ast.NamedArg>(args)
    const named = all.findIndex((a) => a.name !== null)
    const late = named < 0 ? undefined : all.find((a, k) => k > named && a.name === null)
    if (late)
      fail({
        code: 'parse/argument-order',
        message: 'an argument without a name follows one with a name',
        span: late.span,
        labels: [{ span: all[named]!.span, text: 'named here' }],
        hint: 'write it before, or name it too',
      })
    return all
  },
  NamedArg_named(name, _, value): ast.NamedArg {
    return { name: get(name), value: get(value), span: spanOf(this) }
  },
  NamedArg_place(value): ast.NamedArg {
    return { name: null, value: get(value), span: spanOf(this) }
  },
}
