/** Stage III → a JavaScript module: one exported function for each launch, over typed arrays and numbers. */
import type { Expr } from '../../../ir/expr.ts'
import type { Launch, Plan } from '../../../ir/loops.ts'
import { hasBarrier } from '../../../ir/tree.ts'
import { argsOf, type LaunchUse } from '../../launch-uses.ts'
import type { Entry, PrintedModule } from '../../module.ts'
import { Mangler } from '../../name-mangling.ts'
import { Printer } from '../../printer.ts'
import type { Helpers } from '../../spellings.ts'
import { RESERVED } from './reserved.ts'
import { JS, sharedArray } from './spellings.ts'

export function jsModule(plan: Plan, uses: readonly LaunchUse[]): PrintedModule {
  const helpers: Helpers = new Map()
  const functions: string[] = []
  const entries: Entry[] = []
  const buffers = new Map(plan.buffers.map((b) => [b.name, b]))
  const scalars = new Set(plan.params.filter((p) => p.kind === 'scalar').map((p) => p.name))
  for (const use of uses) {
    const { launch } = use
    const mangler = new Mangler(RESERVED)
    const entry = mangler.unique(launch.name)
    const printer = new Printer(
      { target: JS, mangler, helpers, buffers, param: () => undefined, scalars },
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

const AXES = ['block_z', 'block_y', 'block_x', 'thread_z', 'thread_y', 'thread_x'] as const

function functionText(
  launch: Launch,
  name: string,
  parameters: readonly string[],
  body: readonly string[],
  printer: Printer,
): string {
  const extent = (axis: (typeof AXES)[number]): string => {
    const k = 'xyz'.indexOf(axis.slice(-1))
    return axis.startsWith('block') ? printer.expr(launch.grid[k]!) : String(launch.block[k])
  }
  const one = (axis: (typeof AXES)[number]): boolean => {
    const k = 'xyz'.indexOf(axis.slice(-1))
    return axis.startsWith('block') ? isOne(launch.grid[k]!) : launch.block[k] === 1
  }
  const loops = AXES.filter((a) => !one(a))
  const open = (axes: readonly string[], indent: string): string[] =>
    axes.map(
      (a, k) =>
        `${indent}${'  '.repeat(k)}for (let ${a} = 0; ${a} < ${extent(a as (typeof AXES)[number])}; ${a}++) {`,
    )
  const close = (axes: readonly string[], indent: string): string[] =>
    axes.map((_, k) => `${indent}${'  '.repeat(axes.length - 1 - k)}}`)
  const shared = printer.shared.map(
    (b) => `const ${printer.ref(b.name).name} = new ${sharedArray(b.dtype)}(${printer.expr(b.shape[0]!)});`,
  )
  const zeros = AXES.filter(one).map((a) => `const ${a} = 0;`)
  const usesAxis = (a: string): boolean => body.some((l) => l.includes(a))
  const constants = zeros.filter((_, k) => usesAxis(AXES.filter(one)[k]!))
  const head = `export function ${name}(${parameters.join(', ')}) {`
  const pad = (lines: readonly string[], by: string): string[] => lines.map((l) => by + l)
  if (!hasBarrier(launch.body)) {
    const by = '  '.repeat(loops.length)
    return [
      head,
      ...pad(constants, '  '),
      ...pad(printer.arrays, '  '),
      ...open(loops, '  '),
      ...pad(pad(shared, '  '), by),
      ...pad(body, by),
      ...close(loops, '  '),
      '}',
    ].join('\n')
  }
  // Threads that meet at barriers take turns: each is a generator that yields where it waits.
  const blocks = loops.filter((a) => a.startsWith('block'))
  const threads = loops.filter((a) => a.startsWith('thread'))
  const by = '  '.repeat(blocks.length)
  return [
    head,
    ...pad(constants, '  '),
    ...open(blocks, '  '),
    ...pad(
      [
        ...pad(shared, '  '),
        `  const thread = function* (${threads.join(', ')}) {`,
        ...pad(printer.arrays, '    '),
        ...pad(body, '  '),
        '  };',
        '  let waiting = [];',
        ...open(threads, '  '),
        `  ${'  '.repeat(threads.length)}waiting.push(thread(${threads.join(', ')}));`,
        ...close(threads, '  '),
        '  while (waiting.length > 0) waiting = waiting.filter((t) => !t.next().done);',
      ],
      by,
    ),
    ...close(blocks, '  '),
    '}',
  ].join('\n')
}

const isOne = (e: Expr): boolean => e.kind === 'const' && e.value === 1
