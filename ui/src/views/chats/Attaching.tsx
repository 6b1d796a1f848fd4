import { useRef } from "react";
import type { FilePart } from "../../client/client";
import { bytes } from "../../parts/format";
import { Icon } from "../../parts/Icon";
import { visible } from "../../parts/markdown/visible";

/** A file that is to go along, read. */
export interface Chosen extends FilePart {
  readonly name: string;
  readonly size: number;
}

interface AttachProps {
  disabled: boolean;
  onChoose: (files: readonly File[]) => void;
}

/** The way to choose images and files. */
export function Attach({ disabled, onChoose }: AttachProps) {
  const field = useRef<HTMLInputElement>(null);
  return (
    <>
      <input
        ref={field}
        type="file"
        multiple
        hidden
        aria-label="Images and files"
        onChange={({ target }) => {
          onChoose([...(target.files ?? [])]);
          target.value = ""; // the same one can be chosen again
        }}
      />
      <button
        type="button"
        disabled={disabled}
        title="Attach images or files"
        aria-label="Attach"
        onClick={() => field.current?.click()}
      >
        <Icon name="plus" size={16} />
      </button>
    </>
  );
}

interface ChosenFilesProps {
  files: readonly Chosen[];
  onRemove: (file: Chosen) => void;
}

/** What goes along when the message is sent. */
export function ChosenFiles({ files, onRemove }: ChosenFilesProps) {
  if (files.length === 0) return null;
  return (
    <ul className="chat-files" aria-label="Goes along">
      {files.map((file, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: files may have the same name
        <li key={`${file.name} ${index}`} className="tag">
          <bdi>{visible(file.name)}</bdi> <span className="quiet">{bytes(file.size)}</span>
          <button
            type="button"
            className="plain"
            aria-label={`Leave ${visible(file.name)} out`}
            onClick={() => onRemove(file)}
          >
            <Icon name="close" size={12} />
          </button>
        </li>
      ))}
    </ul>
  );
}

/** The files with their contents; rejects if one cannot be read, for instance since it is gone. */
export function contentsOf(files: readonly File[]): Promise<Chosen[]> {
  return Promise.all(files.map(contentOf));
}

async function contentOf(file: File): Promise<Chosen> {
  try {
    const url = await new Promise<string>((resolve, reject) => {
      const reader = new FileReader();
      reader.onload = () => resolve(String(reader.result));
      reader.onerror = () => reject(reader.error);
      reader.readAsDataURL(file);
    });
    return { name: file.name, size: file.size, data: url.slice(url.indexOf(",") + 1) };
  } catch {
    throw new Error(`'${file.name}' cannot be read. Choose it again.`);
  }
}
