import { existsSync, readdirSync } from 'node:fs'
import { type RunInputs, valuesIn } from '../../api/inputs/bound-inputs.ts'
import { flatInputs } from '../../api/inputs/flat-inputs.ts'
import type { Kernel } from '../../api/kernels/kernel.ts'
import { SptError } from '../../ast/diagnostics/diagnostic.ts'
import { DEVICE_KINDS } from '../../backends/target.ts'
import { packageFolder, packageText } from '../../io/package/package.ts'
import { devices } from '../../node.ts'
import { installPackageFiles } from '../../node-programs.ts'
import { bindInputs } from '../../run/bind/index.ts'
import { runOn } from '../../run/compile/program.ts'
import { type Explanation, explainModel } from '../../run/explain/index.ts'
import type { Device, DeviceKind } from '../../runtime/device.ts'
import type { Call, CommandSpec } from '../arguments/command.ts'
import { optionTable } from '../arguments/option-table.ts'
import {
  BIND,
  checkSelectionInputs,
  DEVICE,
  DEVICE_PROPERTIES,
  KERNEL,
  SCHEDULE,
  SEED,
  SIZE,
  TRUST,
} from '../arguments/options.ts'
import { formJson, formsOn, withForm } from '../forms.ts'
import { EXIT } from '../output/failure.ts'
import { jsonNumber } from '../output/figures.ts'
import { bindOptions } from '../run/bind-options.ts'
import { explanationText } from '../run/explain-report.ts'
import { reportRejectedDefault, withKernel } from '../scheduled-kernel.ts'

// The error index: `spt explain CODE` prints the section of a code from `docs/reference/errors/`.

export const INDEX = 'docs/reference/errors/'

/** A page: the program that examples extend (empty if absent), and sections by code. */
interface ErrorPage {
  readonly shared: string
  readonly sections: ReadonlyMap<string, string>
}

export function errorPage(text: string): ErrorPage {
  const [intro = '', ...sections] = text.split(/^## /m)
  return {
    shared: /^```(?:spt|ts) shared\n.*?^```$/ms.exec(intro)?.[0] ?? '',
    sections: new Map(sections.map((s) => [s.slice(0, s.indexOf('\n')), `## ${s.trimEnd()}`])),
  }
}

/** The code in an argument such as `check/unknown-name` or `error[check/unknown-name]`; undefined for file names. */
const codeIn = (argument: string): string | undefined =>
  /^(?:error|warning)?\[?([a-z]+\/[a-z0-9-]+)\]?:?$/.exec(argument)?.[1]

/** The section of a code, then the program that examples extend. @throws UsageError for an unknown code */
function explainCode(call: Call, code: string): string {
  const folder = packageFolder()
  const names = folder ? readdirSync(new URL(INDEX, folder)).filter((f) => f.endsWith('.md')) : []
  const pages = names.map((name) => errorPage(packageText(INDEX + name) ?? ''))
  const page = pages.find(({ sections }) => sections.has(code))
  if (!page) {
    const [area, name] = code.split('/') as [string, string]
    const candidates = pages.flatMap(({ sections }) => [...sections.keys()])
    const elsewhere = candidates.filter((c) => c.endsWith(`/${name}`))
    return call.reject(`there is no error code ${code}, and no file of that name`, {
      lookup: { name: code, candidates: elsewhere.length > 0 ? elsewhere : candidates },
      ...(elsewhere.length > 0 && { hint: `spt explain ${elsewhere[0]}` }),
      ...(candidates.some((c) => c.startsWith(`${area}/`))
        ? {}
        : { expected: 'a code such as check/unknown-name' }),
    })
  }
  const section = page.sections.get(code)!
  const extended = /^```diff$/m.test(section) && page.shared !== ''
  return `${section}\n${extended ? `\nThe examples extend this program:\n\n${page.shared}\n` : ''}`
}

export const explain: CommandSpec = {
  name: 'explain',
  args: 'FILE|CODE',
  count: [1, 1],
  summary: 'Report the traffic, work and time of each launch, or explain an error code',
  options: optionTable`
    ${KERNEL}
    ${SCHEDULE}
    ${BIND}
    ${SIZE}
    ${DEVICE_PROPERTIES.map((o) => ({ ...o, about: `${o.about}; default: that of the device, if present` }))}
    --device <D>  ${DEVICE.about}; times are measured only if the device is present
    ${SEED}
    --json <FILE>  [write]  Also write a JSON file; times in milliseconds
    ${TRUST}
  `,
  notes: [
    'Compulsory traffic: each array of a launch is moved once. Requested traffic ("bytes accessed"): loads\nand stores of all threads, before caches. Traffic and floating-point operations are counted in the lowered kernel with\nthese sizes and index arrays. Integer arithmetic for addresses is not counted. Registers, local memory and occupancy\nare read from the CUDA driver. Percentages refer to ceilings measured on the chip, if available.',
  ],
  examples: [
    'spt explain check/unknown-name',
    'spt explain kernel.spt --bind A=graph.mtx --size d=64',
    'spt explain kernel.spt --schedule "gpu(8, 32)" --bind A=graph.mtx --size d=64 --device webgpu',
  ],
  async run(call) {
    installPackageFiles()
    const argument = call.args[0]!
    if (!existsSync(argument)) {
      const code = codeIn(argument)
      if (code !== undefined) {
        call.io.out(explainCode(call, code))
        return EXIT.ok
      }
      if (/^[\w-]+$/.test(argument))
        call.reject(`'${argument}' is not a file and not an error code`, {
          expected: 'a program such as kernel.spt, or a code such as bind/rank',
        })
    }
    const kind = call.choice('device', DEVICE_KINDS) ?? 'cpu'
    const { files, seed } = bindOptions(call)
    return withKernel(call, kind, async (request) => {
      const { params, ...properties } = request.selectionInputs()
      if (request.fixed) checkSelectionInputs(call, request.source, true)
      const sizes = new Map(Object.entries(params))
      const earlyTensors = await request.readEarly(files, sizes)
      const earlyInputs = { tensors: earlyTensors, params, seed }
      const { device: opened, reason } = await openDevice(kind)
      await using device = opened
      const scheduled = await request.schedule(device, { ...properties, ...earlyInputs })
      const tensors = await request.readRemaining(scheduled, files, earlyTensors, sizes)
      const inputs = { ...earlyInputs, tensors }
      reportRejectedDefault(call, scheduled)
      const { kernel } = scheduled
      const availableForms = formsOn(kernel, device ?? kind, inputs)
      const { e, forms } = await withForm(kernel, availableForms, async (k, forms) => {
        const runs = runOn(k, kind)
        return {
          e: device ? await measureKernel(runs, device, inputs) : modelKernel(runs, kind, inputs),
          forms,
        }
      })
      const path = call.one('json')
      const form = forms.length > 0 ? { form: formJson(forms) } : {}
      if (path !== undefined) await writeJson(call, path, { ...e, schedule: scheduled.schedule, ...form })
      const shownForms = scheduled.selection?.schedule === null ? [] : forms
      call.io.out(explanationText(e, { ...scheduled, forms: shownForms }, reason))
      return EXIT.ok
    })
  },
}

/** Opens the device; `null` with the reason if it is not available. */
async function openDevice(kind: DeviceKind): Promise<{ device: Device | null; reason: string | null }> {
  try {
    return { device: await devices[kind](), reason: null }
  } catch (error) {
    if (!(error instanceof SptError)) throw error
    return { device: null, reason: error.diagnostics[0]!.message }
  }
}

async function measureKernel(kernel: Kernel, device: Device, inputs: RunInputs): Promise<Explanation> {
  using compiled = await kernel.build(device, { auto: false })
  using prepared = await compiled.bind(...flatInputs(inputs))
  return await prepared.explain()
}

function modelKernel(kernel: Kernel, kind: DeviceKind, inputs: RunInputs): Explanation {
  const stage1 = kernel.compilation.kernel
  const { tensors, params, seed } = valuesIn(stage1, inputs)
  return explainModel(
    kernel.compilation,
    bindInputs(stage1, { tensors, params, ...(seed !== undefined && { seed }) }),
    kind,
  )
}

const writeJson = (call: Call, path: string, data: object): Promise<void> =>
  call.write(path, `${JSON.stringify(data, jsonNumber, 2)}\n`)
