process.stdout.write("flow\n");
