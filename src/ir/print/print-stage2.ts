/** Stage II as text, as printed by `spt show --stage 2` and in rejections of schedule steps. */
import { unreachable } from '../../ast/diagnostics/diagnostic.ts'
import { kernelIdentifier } from '../coordinates/derived-names.ts'
import { roundsText } from '../coordinates/rounds.ts'
import type { Expr, Load } from '../expressions/expr.ts'
import type { CallPiece } from '../instructions/instr-call.ts'
import type { Buffer, For, Kernel2, Kernel3, LoopMode, Stmt } from '../statements/loops.ts'
import { piecesOf } from '../statements/tree.ts'
import { exprPrinter, plainConstant } from './print-expr.ts'

/** Maximum number of nodes printed of one expression; the remaining ones are printed as `…`. */
const MAX_PRINTED_NODES = 4000

const text = exprPrinter(plainConstant, MAX_PRINTED_NODES)

/** One expression, with the fewest parentheses; `level` is the binding strength of its surroundings. */
export const printExpr = (e: Expr, level = 0): string => text(e, null, level)

export function printMode(mode: LoopMode): string {
  switch (mode.kind) {
    case 'serial':
      return ''
    case 'bind':
      return `  @${mode.to}${mode.cluster ? `, clusters of ${mode.cluster}` : ''}`
    case 'unroll':
      return mode.factor === null
        ? '  @unroll'
        : `  @unroll(${mode.factor}${mode.predicated ? ', predicated' : ''})`
    case 'vectorize':
      return '  @vectorize'
    case 'pipeline':
      return `  @pipeline(${mode.stages}${mode.continued ? ', continued' : ''})`
    case 'accumulate':
      return `  @accumulate${accumulateText(mode)}`
    case 'instr':
      return `  @${mode.instr.name}`
    default:
      return unreachable(mode)
  }
}

function accumulateText({ by, within, carry }: LoopMode & { readonly kind: 'accumulate' }): string {
  const options = [
    ...(by === 1 ? [] : [String(by)]),
    ...(within === undefined ? [] : [`within ${within}`]),
    ...(carry === undefined ? [] : [carry]),
  ]
  return options.length > 0 ? `(${options.join(', ')})` : ''
}

/** The head line of a loop. If its variable differs from the user's name, that name follows. */
export function printLoop(loop: For): string {
  const sourceName = loop.var === loop.name ? '' : ` (${loop.nest}.${loop.name})`
  const where =
    loop.guards.length > 0 ? `  where ${loop.guards.map((g) => printExpr(g, 2)).join(' and ')}` : ''
  const reduce = loop.reduce ? '  reduce' : ''
  return `for ${loop.var}${sourceName} in 0..${printExpr(loop.extent)}${reduce}${printMode(loop.mode)}${where}`
}

/** The memory of a buffer: the declared memory's name, or the scope. */
const memoryName = (b: Buffer): string => b.memory?.name ?? b.scope

function printBuffer(b: Buffer): string {
  const scope = b.scope === 'global' ? '' : `  ${memoryName(b)}`
  const fill = b.fill === 0 ? '' : `  fill ${plainConstant({ value: b.fill, dtype: b.dtype })}`
  const accumulate = b.accumulate === b.dtype ? '' : `  accumulate ${b.accumulate}`
  const packed = b.packed === undefined ? '' : `  packed ${b.packed}`
  return `${b.name}: ${b.dtype}[${b.shape.map((e) => printExpr(e)).join(', ')}] ${b.role}${scope}${fill}${accumulate}${packed}`
}

interface PrintOptions {
  /** Loop variables whose lines get a `>`. */
  readonly mark?: readonly string[]
  /** Leave out the signature and the buffers. */
  readonly bodyOnly?: boolean
}

function printTarget(t: Pick<Load, 'buffer' | 'index'>): string {
  return `${t.buffer}[${t.index.map((e) => printExpr(e)).join(', ')}]`
}

function printStatements(
  body: readonly Stmt[],
  indent: string,
  out: string[],
  mark: ReadonlySet<string>,
): void {
  const gutter = (isMarked: boolean): string => (mark.size === 0 ? '' : isMarked ? '> ' : '  ')
  const line = (text: string, isMarked = false): void => {
    out.push(`${gutter(isMarked)}${indent}${text}`)
  }
  const innerIndent = `${indent}  `
  for (const s of body) {
    switch (s.kind) {
      case 'for':
        line(printLoop(s), mark.has(s.var))
        printStatements(s.body, innerIndent, out, mark)
        break
      case 'if':
        line(`if ${printExpr(s.cond)}${s.absent === undefined ? '' : `  or lost ${s.absent}`}`)
        printStatements(s.then, innerIndent, out, mark)
        if (s.else.length > 0) {
          line('else')
          printStatements(s.else, innerIndent, out, mark)
        }
        break
      case 'store':
        line(`${printTarget(s)} = ${printExpr(s.value)}`)
        break
      case 'reduce': {
        const tuple = s.targets.length > 1
        const targets = s.targets.map(printTarget).join(', ')
        const values = s.values.map((e) => printExpr(e)).join(', ')
        const name = ` ${s.reducer.name}=`
        line(
          `${tuple ? `(${targets})` : targets}${name} ${tuple ? `(${values})` : values}` +
            `${s.init ? '  init' : ''}${s.atomic ? '  atomic' : ''}${s.lanes ? `  lanes ${s.lanes.first ? `${s.lanes.first} to ` : ''}${s.lanes.width} of ${s.lanes.among}` : ''}`,
        )
        break
      }
      case 'alloc':
        line(
          `alloc ${s.buffer.name}: ${s.buffer.dtype}[${s.buffer.shape.map((e) => printExpr(e)).join(', ')}] ${memoryName(s.buffer)}`,
        )
        break
      case 'let':
        line(
          `let ${s.name} = ${printExpr(s.value)}${s.lane ? `  lane xor ${s.lane.xor} of ${s.lane.among}` : ''}${s.uniform ? '  uniform' : ''}`,
        )
        break
      case 'barrier':
        line(
          s.lanes
            ? `barrier  lanes ${s.lanes.width} of ${s.lanes.among}`
            : s.cluster
              ? 'barrier  cluster'
              : 'barrier',
        )
        break
      case 'while':
        line(`while ${printExpr(s.cond)}`)
        printStatements(s.body, innerIndent, out, mark)
        break
      case 'vector_load':
        line(`let ${s.names.join(', ')} = ${printExpr(s.load)} ..`)
        break
      case 'vector_store':
        line(
          `${printExpr(s.target)} .. ${s.atomic ?? ''}= ${s.values.map((e) => printExpr(e)).join(', ')}${s.atomic ? '  atomic' : ''}`,
        )
        break
      case 'instr':
        line(`instr ${s.instr} ${piecesOf(s).map(printPiece).join(', ')}`.trimEnd())
        break
      case 'fill':
        line(`fill ${s.buffer} = ${printExpr(s.value)}`)
        break
      case 'rounds':
        line(roundsText(s, printExpr))
        break
      default:
        unreachable(s)
    }
  }
}

function printPiece(p: Exclude<CallPiece, string>): string {
  if (p.kind === 'value') return printExpr(p.value)
  return `${p.kind} ${p.buffer}[${p.index.map((e) => printExpr(e)).join(', ')}]`
}

/** The statements as text, one line each, without a final line break. */
export function printBody(body: readonly Stmt[], options: Pick<PrintOptions, 'mark'> = {}): string {
  const out: string[] = []
  printStatements(body, '', out, new Set(options.mark ?? []))
  return out.join('\n')
}

/** A Stage II kernel as text, without a final line break. */
export function print2(kernel: Kernel2, options: PrintOptions = {}): string {
  if (options.bodyOnly) return printBody(kernel.body, options)
  const params = kernel.params.map((p) => `${p.name}: ${p.kind === 'size' ? 'size' : p.dtype}`).join(', ')
  const out = [
    `kernel ${kernelIdentifier(kernel.name)}(${params})`,
    ...kernel.buffers.map((b) => `  ${printBuffer(b)}`),
  ]
  printStatements(kernel.body, '', out, new Set(options.mark ?? []))
  return out.join('\n')
}

// Stage III as text: the buffers that a plan allocates and the steps that it runs.

/** A plan as text, without a final line break. */
export function print3(plan: Kernel3): string {
  const params = plan.params.map((p) => `${p.name}: ${p.kind === 'size' ? 'size' : p.dtype}`).join(', ')
  const out = [`plan ${plan.name}(${params})`, ...plan.buffers.map((b) => `  ${printBuffer(b)}`)]
  for (const s of plan.steps) {
    if (s.kind === 'clear') out.push(`clear ${s.buffer}`)
    else if (s.kind === 'rounds') out.push(roundsText(s, printExpr))
    else {
      out.push(
        `launch ${s.name}  grid ${s.grid.map((e) => printExpr(e)).join(' × ')}  block ${s.block.join(' × ')}${s.when ? `  if ${s.when.choice} is ${s.when.alternative}` : ''}`,
      )
      out.push(
        ...printBody(s.body)
          .split('\n')
          .map((l) => `  ${l}`),
      )
    }
  }
  return out.join('\n')
}
