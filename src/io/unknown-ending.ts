/** Files of unsupported kinds: commands that convert them to a supported one. */
import { failWith } from '../ast/diagnostics/diagnostic.ts'

/** Commands with placeholders: FILE is the file, NEW its name without the ending, NAME for the user to replace. */
const CONVERSIONS: Readonly<Record<string, string>> = {
  '.mat': py("import scipy.io as s; s.mmwrite('NEW.mtx', s.loadmat('FILE')['NAME'])"),
  '.tns': py(
    "import numpy as n; t = n.loadtxt('FILE', ndmin=2); i = t[:, :-1].T.astype(int); n.savez('NEW.npz', coords=i - 1, data=t[:, -1], shape=i.max(1), fill_value=0.)",
  ),
  '.pt': py(
    "import torch, safetensors.torch as s; s.save_file(torch.load('FILE', weights_only=True), 'NEW.safetensors')",
  ),
  '.h5': py("import h5py, numpy as n; n.save('NEW.npy', h5py.File('FILE')['NAME'][()])"),
  '.parquet': py("import pandas; pandas.read_parquet('FILE').to_csv('NEW.csv', index=False)"),
  '.xlsx': py("import pandas; pandas.read_excel('FILE').to_csv('NEW.csv', index=False)"),
  '.pkl': py("import pickle, scipy.sparse as s; s.save_npz('NEW.npz', pickle.load(open('FILE', 'rb')))"),
  '.rb': py("import scipy.io as s; s.mmwrite('NEW.mtx', s.hb_read('FILE'))"),
  // For numbers that are not edges.
  '.csv': py("import numpy as n; n.save('NEW.npy', n.loadtxt('FILE', delimiter=',', ndmin=2))"),
  '.tsv': py("import numpy as n; n.save('NEW.npy', n.loadtxt('FILE', ndmin=2))"),
  '.tar.gz': 'tar xzf FILE',
  '.tgz': 'tar xzf FILE',
  '.gz': 'gunzip FILE',
  '.bz2': 'bunzip2 FILE',
  '.xz': 'unxz FILE',
  '.zst': 'unzstd FILE',
  '.zip': 'unzip FILE',
}

const ALIASES: Readonly<Record<string, string>> = {
  '.pth': '.pt',
  '.bin': '.pt',
  '.hdf5': '.h5',
  '.h5ad': '.h5',
  '.pickle': '.pkl',
  '.rsa': '.rb',
  '.rua': '.rb',
  '.hb': '.rb',
}

function py(code: string): string {
  return `python3 -c "${code}"`
}

/** The command that converts the file `name`; `undefined` if none is known. */
export function conversionOf(name: string): string | undefined {
  const lower = name.toLowerCase()
  const ending = [...Object.keys(CONVERSIONS), ...Object.keys(ALIASES)].find((e) => lower.endsWith(e))
  if (ending === undefined) return undefined
  // Names with characters that are special within quotes are not inserted.
  const file = /^[\w ./@%+=:,-]+$/.test(name) ? name : `FILE${ending}`
  const command = CONVERSIONS[ALIASES[ending] ?? ending]!
  const quoted = command.startsWith('python3') ? file : /^[\w./-]+$/.test(file) ? file : `'${file}'`
  return command.replaceAll('FILE', quoted).replaceAll('NEW', file.slice(0, -ending.length))
}

/** Reports an unsupported file ending. @throws SptError `io/unknown-extension` */
export function unknownEnding(name: string, endings: readonly string[], action: string): never {
  const command = action.startsWith('read') ? conversionOf(name) : undefined
  return failWith(
    'io/unknown-extension',
    command === undefined
      ? `the name '${name}' does not determine a file format to ${action}`
      : `'${name}' is a kind of file that is not read`,
    {
      expected: endings.join(' '),
      ...(command !== undefined && { hint: `convert the file: ${command}` }),
    },
  )
}
