/**
 * Default schedules on a GPU for matrices with very different row lengths: the time of the selected form, which may use
 * another format, divided by the time of the best form in the declared format, and by the time of the kernel's own
 * `auto`. Kernels are measured one after the other; 200 rows of each result are compared with the reference.
 *
 *   node dist/bench/default-schedules.js [--device cuda|webgpu] [--kernels A,B] [--sets A,B] [--data FOLDER]
 *
 * `--sets`: files of the folder, or matrices of generated families.
 */
import { flatInputs } from '../src/api/inputs/flat-inputs.ts'
import { devices, type Kernel, load } from '../src/node.ts'
import { geometricMean } from './gpu/statistics.ts'
import { JUDGED, memberSets, tensorsFor } from './sketches/judged.ts'
import { median, option, packageFile, table } from './support.ts'
import { readData } from './verify-all/data.ts'

const kind = option('device') ?? 'cuda'
if (kind !== 'cuda' && kind !== 'webgpu') throw new Error(`--device is cuda or webgpu, not ${kind}`)
const kernels = (option('kernels') ?? 'spmm,sddmm,spmv,softmax,attention').split(',')
const folder = option('data')
const files = folder === undefined ? [] : await readData(folder)
const UNSEEN = 'hubs:20000:71,hubs:6000:72,power-law-steep:20000:73,citations:30000:74'
const sets = (option('sets') ?? UNSEEN)
  .split(',')
  .flatMap((name) => [...files.filter((d) => d.name === name), ...memberSets(name)])
const device = await devices[kind]()

const rows: (string | number)[][] = []
const found = new Map<string, number[]>()
for (const of of JUDGED.filter((j) => j.order === 2 && kernels.includes(j.kernel)))
  for (const set of sets) {
    const tensors = tensorsFor(of, set)
    if (!tensors) continue
    const inputs = { tensors, params: of.params, seed: 1 }
    const kernel = (await load(packageFile(`kernels/${of.file}.spt`))).kernel(of.kernel)
    const time = async (k: Kernel): Promise<number> => {
      const compiled = await k.build(device)
      const prepared = await compiled.bind(...flatInputs(inputs))
      try {
        const { ok, problems } = await prepared.verify({ sample: { count: 200 } })
        if (!ok) throw new Error(`${of.kernel} on ${set.name}: ${problems[0]}`)
        return median((await prepared.measure({ batch: 20, repeats: 15, warmups: 5 })).times)
      } finally {
        prepared.free()
        compiled.release()
      }
    }
    const start = performance.now()
    const forms = kernel.inspect.scheduleCandidates(device, of.params, tensors)
    const took = performance.now() - start
    const declared = forms.find((f) => f.kernel.compilation.kernel.reformats.length === 0)
    const ms = await time(forms[0]!.kernel)
    const overDeclared = declared && ms / (declared === forms[0] ? ms : await time(declared.kernel))
    const overAuto = kernel.dispatches.includes('auto')
      ? ms / (await time(kernel.schedule('auto')))
      : undefined
    for (const [name, figure] of Object.entries({ declared: overDeclared, auto: overAuto }))
      if (figure !== undefined) {
        const key = `${of.kernel}, ${name}`
        found.set(key, [...(found.get(key) ?? []), figure])
      }
    console.error(of.kernel, set.name, (ms * 1e3).toFixed(1))
    rows.push([of.kernel, set.name, ms * 1e3, overDeclared ?? '', overAuto ?? '', took, forms[0]!.text])
  }
console.log(table(['kernel', 'data', 'µs', 'over declared', 'over auto', 'selection ms', 'form'], rows))
console.log(
  table(
    ['over', 'geometric mean', 'worst'],
    [...found].map(([name, all]) => [name, geometricMean(all), Math.max(...all)]),
  ),
)
await device.dispose()
