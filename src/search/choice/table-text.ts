/**
 * Dispatch tables as text, with one branch per line, so that differences between versions are readable. Rules for one
 * kind of device are merged into the table, and tables of another version of their kernel are reported.
 */
import type { Kernel } from '../../api/kernels/kernel.ts'
import { type Diagnostic, failAt } from '../../ast/diagnostics/diagnostic.ts'
import type { Branch, DispatchTable, Expr, Origin, RuleOrigin } from '../../ast/nodes/nodes.ts'
import { print, printStep } from '../../ast/print/print.ts'
import { kernelText } from '../../ast/print/print-expr.ts'
import type { Schedule } from '../../elaborate/index.ts'
import { kernelWord } from '../../ir/coordinates/derived-names.ts'
import type { DeviceKind } from '../../runtime/device.ts'
import { parse } from '../../schedule/steps/language.ts'
import { hashOf, kernelHash } from '../records/identity.ts'

/** A rule of a dispatch table, in the syntax of the language. */
export interface StoredRule {
  /** The condition; absent for all other cases. */
  readonly when?: string
  /** The schedule, or the candidates among which the cost model selects. */
  readonly calls: string | readonly string[]
  readonly origin?: string
}

interface StoredDispatch {
  readonly kernel: string
  readonly kernelHash?: string
  readonly origins: readonly RuleOrigin[]
  readonly rules: readonly StoredRule[]
}

/** Texts of the language have no quotes and no line breaks. */
const quoted = (x: unknown): string => `"${String(x).replaceAll('"', "'").replace(/\s+/g, ' ')}"`

function originText({ name, status, ...fields }: RuleOrigin): string {
  const lines = Object.entries(fields).map(([field, x]) => {
    const value: unknown = x
    const texts = Array.isArray(value)
      ? value.map(quoted)
      : [typeof value === 'number' ? value : quoted(value)]
    return `${field} ${texts.join(', ')}`
  })
  return `origin ${quoted(name)} ${status} {\n${lines.join('\n')}\n}`
}

function ruleText({ when, calls, origin }: StoredRule): string {
  const called = typeof calls === 'string' ? calls : `fastest { ${calls.join('; ')} }`
  const head = when === undefined ? 'otherwise' : `when (${when})`
  return `${head} ${called}${origin === undefined ? '' : ` from ${quoted(origin)}`}`
}

export const dispatchTableText = ({ kernel, kernelHash: hash, origins, rules }: StoredDispatch): string =>
  formatted(`dispatch ${kernel}${hash === undefined ? '' : ` hash ${quoted(hash)}`} {
${[...origins.map(originText), ...rules.map(ruleText)].join('\n')}
}`)

const formatted = (text: string): string => print(parse({ name: 'table', text }))

// Dispatch tables of another version of their kernel.

/**
 * A warning for each dispatch table that was found before its kernel or the called schedules changed. A table can serve
 * all types of a kernel: pass the kernels of all types, of which one has the hash.
 */
export function staleChoices(...kernels: readonly Kernel[]): readonly Diagnostic[] {
  const stored = kernels.flatMap((kernel) =>
    [...kernel.declaredDispatches.values()].flatMap(({ name, table }) => {
      if (!table?.hash) return []
      const now = tableHash(
        kernel,
        table.branches.flatMap((b) => b.calls.map((c) => c.schedule.name)),
      )
      // The hash of the kernel alone: a search found schedules that were not declared yet.
      const isCurrent = [now, kernelHash(kernel)].includes(table.hash.value)
      return [{ kernel, name, table, hash: table.hash, now, isCurrent }]
    }),
  )
  const current = new Set(stored.flatMap((s) => (s.isCurrent ? [s.table.path] : [])))
  const stale = new Map(
    stored.flatMap((s) => (current.has(s.table.path) ? [] : [[s.table.path, s] as const])).reverse(),
  )
  return [...stale.values()].map(({ kernel, name, table, hash, now }) => ({
    code: 'table/stale',
    severity: 'warning',
    message: `the dispatch table of ${kernel.name}.${name} was found for another version of the kernel or of its schedules`,
    span: hash.span,
    hint: `search again: spt tune FILE --kernel ${kernelWord(kernel.name)} --bind … --generalise ${table.path}; if the schedules are as fast as before: hash "${now}"`,
  }))
}

// Dispatch tables from searches: rules for one kind of device, next to those for others.

/** Rules that a search found for a kind of device, with the search. */
export interface FoundRules {
  readonly kernel: Kernel
  readonly rules: readonly StoredRule[]
  readonly device: DeviceKind
  readonly origin: RuleOrigin
}

/** @throws SptError `table/…`, `parse/…` for a text that is not just a table of the kernel */
export const checkTable = (text: string, name: string, kernel: string): void =>
  void tableIn(text, name, kernel)

function tableIn(text: string, name: string, kernel: string): DispatchTable {
  const file = parse({ name, text })
  const [table, second] = file.decls
  if (table?.kind !== 'table' || second || file.imports.length > 0)
    return failAt('table/program', file.span, {
      message: `\`${name}\` is a program`,
      expected: 'a file with a dispatch table only',
      hint: 'name another file',
    })
  const of = kernelText(table.kernel, table.types)
  if (of !== kernel)
    failAt('table/kernel', table.kernel.span, {
      message: `\`${name}\` holds a dispatch of kernel ${of}`,
      expected: `a dispatch of kernel ${kernel}`,
      hint: 'name another file',
    })
  return table
}

/**
 * The text of a dispatch table with the found rules. With `previous`, the text of an earlier table, they apply to their
 * kind of device only, and come first. The earlier rules follow, except rules for the same kind of device if one of the
 * found rules holds for all data.
 */
export function dispatchTable({ kernel, rules, device, origin }: FoundRules, previous?: string): string {
  const found = rules.map(({ when, calls }): StoredRule => {
    const of = when === undefined ? device : `${device} and ${grouped(when)}`
    const condition = previous === undefined ? when : of
    return { ...(condition !== undefined && { when: condition }), calls, origin: origin.name }
  })
  const isTotal = rules.some((r) => r.when === undefined)
  const isReplaced = ({ cond, origin: from }: Branch): boolean =>
    from?.value === origin.name || (isTotal && cond !== null && isOnlyFor(device, cond))
  const read = (text: string): DispatchTable => tableIn(text, 'table', kernel.name)
  const own = read(dispatchTableText({ kernel: kernel.name, origins: [origin], rules: found }))
  const before = previous === undefined ? { ...own, items: [] } : read(previous)
  const earlier = before.items
  const branches = [...own.items, ...earlier.filter((x) => !isBranch(x) || !isReplaced(x))].filter(isBranch)
  const origins = [...earlier, ...own.items].filter(
    (x, k, list): x is Origin =>
      !isBranch(x) &&
      branches.some((b) => b.origin?.value === x.name.value) &&
      list.findLastIndex((y) => !isBranch(y) && y.name.value === x.name.value) === k,
  )
  const called = branches.flatMap((b) => b.calls.map((c) => c.schedule.name))
  const { span } = own
  const hash = { value: tableHash(kernel, called), span }
  const table: DispatchTable = { ...before, hash, items: [...origins, ...branches] }
  return print({ kind: 'file', imports: [], decls: [table], span })
}

const isBranch = (x: DispatchTable['items'][number]): x is Branch => 'cond' in x

/** True if a condition holds on one kind of device only. */
const isOnlyFor = (device: DeviceKind, e: Expr): boolean =>
  e.kind === 'binary' && e.op === 'and'
    ? isOnlyFor(device, e.a) || isOnlyFor(device, e.b)
    : e.kind === 'name' && e.name === device

const grouped = (condition: string): string => (/\bor\b/.test(condition) ? `(${condition})` : condition)

// Identity of what a dispatch table was found for.

/**
 * Hash of a kernel before any step and of the schedules that a table calls, with the schedules that these use; of the
 * kernel alone if a search found schedules that are not declared yet.
 */
function tableHash(kernel: Kernel, called: readonly string[]): string {
  const names = [...new Set(called)].sort()
  const declared = names.flatMap((name) => kernel.declaredSchedules.get(name) ?? [])
  const unknown = names.length - declared.length
  const dispatches = names.filter((name) => kernel.declaredDispatches.has(name)).length
  if (unknown > dispatches) return kernelHash(kernel)
  const used = new Set<Schedule>()
  const visit = (s: Schedule): void => {
    if (used.has(s)) return
    used.add(s)
    s.uses.forEach(visit)
  }
  declared.forEach(visit)
  return hashOf(kernelHash(kernel), ...[...used].map(scheduleIdentity))
}

const scheduleIdentity = ({ name, params, steps }: Schedule): string =>
  JSON.stringify([name, params, steps.map(printStep)], (key, x: unknown) => (key === 'span' ? undefined : x))
