import { configure } from "@testing-library/react";

configure({ asyncUtilTimeout: 30_000 }); // for what comes at once unless something is wrong, or the machine is busy
