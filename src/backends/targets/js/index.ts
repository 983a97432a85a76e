/** JavaScript over typed arrays: a module of functions, which run blocks and threads serially. */

import { type Expr, int, isOne, type ThreadAxis } from '../../../ir/expressions/expr.ts'
import { dimensionOf, levelOf } from '../../../ir/instructions/hardware-axes.ts'
import type { Kernel3, Launch } from '../../../ir/statements/loops.ts'
import { hasBarrier } from '../../../ir/statements/tree.ts'
import { BLOCK_INDICES } from '../../grid-folding.ts'
import { argsOf, type LaunchUse, launchUses } from '../../launch-uses.ts'
import type { Entry, PrintedModule } from '../../module.ts'
import { type Printer, printerOf } from '../../print/printer.ts'
import { Mangler, reservedWords } from '../../print/reserved-words.ts'
import type { Helpers } from '../../print/spellings.ts'
import type { Target } from '../../target.ts'
import { HELPERS, SPELLINGS, sharedArray } from './spellings.ts'

export const JS = {
  scheduleDevice: 'cpu',
  parallel: false,
  grid: false,
  extension: '.js',
  // No engine keeps an element of a typed array in a register, so elements are promoted to variables.
  lowering: { promote: true },
  reusesShared: false,
  declared: { addresses: false },
  print: (plan, { wide }) => [jsModule(plan, launchUses(plan), wide)],
} as const satisfies Target

/** Prints Stage III as a JavaScript module: one exported function for each launch, over typed arrays and numbers. */
function jsModule(plan: Kernel3, uses: readonly LaunchUse[], wide = false): PrintedModule {
  const helpers: Helpers = new Map()
  const functions: string[] = []
  const entries: Entry[] = []
  const buffers = new Map(plan.buffers.map((b) => [b.name, b]))
  const scalars = new Set(plan.params.filter((p) => p.kind === 'scalar').map((p) => p.name))
  for (const use of uses) {
    const { launch } = use
    const mangler = new Mangler(reserved())
    const entry = mangler.unique(launch.name)
    const printer = printerOf(
      { target: SPELLINGS, mangler, helpers, buffers, param: () => undefined, scalars, wide },
      launch,
    )
    const args = argsOf(use)
    const parameters = args.map((a) => mangler.name(a.name))
    const body = printer.body(launch.body, '  ')
    functions.push(functionText(launch, entry, parameters, body, printer))
    entries.push({ name: entry, args, block: launch.block, sharedBytes: 0 })
  }
  return { name: plan.name, text: [...helpers.values(), ...functions].join('\n\n'), entries }
}

/** Loops over block and thread indices, outermost first. */
const AXES: readonly ThreadAxis[] = ['block.z', 'block.y', 'block.x', 'thread.z', 'thread.y', 'thread.x']
const indexName = (axis: ThreadAxis): string => SPELLINGS.builtin(axis)

function functionText(
  launch: Launch,
  name: string,
  parameters: readonly string[],
  body: readonly string[],
  printer: Printer,
): string {
  const extent = (axis: ThreadAxis): Expr => {
    const k = dimensionOf(axis)
    return levelOf(axis) === 'block' ? launch.grid[k]! : int(launch.block[k]!)
  }
  const isSingle = (axis: ThreadAxis): boolean => isOne(extent(axis))
  const loops = AXES.filter((a) => !isSingle(a))
  const openLoops = (axes: readonly ThreadAxis[], indent: string): string[] =>
    axes.map((axis, k) => {
      const a = indexName(axis)
      return `${indent}${'  '.repeat(k)}for (let ${a} = 0; ${a} < ${printer.expr(extent(axis))}; ${a}++) {`
    })
  const closeLoops = (axes: readonly ThreadAxis[], indent: string): string[] =>
    axes.map((_, k) => `${indent}${'  '.repeat(axes.length - 1 - k)}}`)
  const shared = printer.shared.map(
    (b) => `const ${printer.refOf(b.name).name} = new ${sharedArray(b.dtype)}(${printer.expr(b.shape[0]!)});`,
  )
  const usedConstants = AXES.filter(isSingle)
    .map(indexName)
    .filter((a) => body.some((l) => l.includes(a)))
  const constants = usedConstants.map((a) => `const ${a} = 0;`)
  const header = `export function ${name}(${parameters.join(', ')}) {`
  const indentLines = (lines: readonly string[], indent: string): string[] => lines.map((l) => indent + l)
  if (!hasBarrier(launch.body)) {
    const indent = '  '.repeat(loops.length)
    return [
      header,
      ...indentLines(constants, '  '),
      ...indentLines(printer.arrays, '  '),
      ...openLoops(loops, '  '),
      ...indentLines(indentLines(shared, '  '), indent),
      ...indentLines(body, indent),
      ...closeLoops(loops, '  '),
      '}',
    ].join('\n')
  }
  // With barriers, each thread is a generator that yields at barriers, and threads run in turns.
  const blocks = loops.filter((a) => levelOf(a) === 'block')
  const threads = loops.filter((a) => levelOf(a) === 'thread')
  const indent = '  '.repeat(blocks.length)
  const indices = threads.map(indexName).join(', ')
  return [
    header,
    ...indentLines(constants, '  '),
    ...openLoops(blocks, '  '),
    ...indentLines(
      [
        ...indentLines(shared, '  '),
        `  const thread = function* (${indices}) {`,
        ...indentLines(printer.arrays, '    '),
        ...indentLines(body, '  '),
        '  };',
        '  let waiting = [];',
        ...openLoops(threads, '  '),
        `  ${'  '.repeat(threads.length)}waiting.push(thread(${indices}));`,
        ...closeLoops(threads, '  '),
        '  while (waiting.length > 0) waiting = waiting.filter((t) => !t.next().done);',
      ],
      indent,
    ),
    ...closeLoops(blocks, '  '),
    '}',
  ].join('\n')
}

// Reserved words of generated JavaScript.

/** Words reserved in any mode, and globals of engines. */
const LANGUAGE = `
abstract arguments await boolean break byte case catch char class const continue debugger default delete do
double else enum eval export extends false final finally float for function goto if implements import in
instanceof int interface let long native new null package private protected public return short static super
switch synchronized this throw throws transient true try typeof undefined var void volatile while with yield
async of get set Math NaN Infinity Number Object Array Float64Array Float32Array Int32Array Uint32Array
Int16Array Uint16Array Int8Array Uint8Array DataView globalThis`

const reserved = reservedWords(LANGUAGE, [SPELLINGS], HELPERS, [
  ...BLOCK_INDICES,
  'thread_x',
  'thread_y',
  'thread_z',
  'thread',
  'waiting',
])
